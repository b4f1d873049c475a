#include "launch/audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/backend.h"
#include "base/text.h"
#include "launch/audit/parts.h"

namespace nlaunch::launch {
namespace {

using Files = std::vector<sys::MappedFile>;
using Uses = std::vector<LibraryUse>;

bool contains(const Files& files, const sys::MappedFile& wanted) {
  return std::ranges::any_of(files, [&](const auto& file) { return same_file(file, wanted); });
}

Files nccl_of(const ObservedProcess& process) {
  Files files;
  std::ranges::copy_if(process.libraries, std::back_inserter(files), is_nccl);
  return files;
}

/// The files that its objects are bound to.
Files bound_of(const ObservedProcess& process) {
  Files files;
  for (const auto& object : process.bindings) {
    for (const auto& target : object.targets) {
      if (!contains(files, target.file)) files.push_back(target.file);
    }
  }
  return files;
}

bool is_within(const Files& files, const Files& others) {
  return std::ranges::all_of(files, [&](const auto& file) { return contains(others, file); });
}

std::string file_name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// "ncclBcast, ncclSend and 3 more"
std::string some_of(const std::vector<std::string>& functions) {
  constexpr std::size_t kNamed = 3;
  if (functions.size() <= kNamed) return text::join(functions, ", ");
  const std::vector<std::string> first(functions.begin(), functions.begin() + kNamed);
  return fmt::format("{} and {} more", text::join(first, ", "), functions.size() - kNamed);
}

class Judge {
 public:
  Judge(const plan::Plan& plan, const plan::BoundNode& node, const Observations& seen,
        const AuditFacts& facts)
      : plan_(plan), node_(node), seen_(seen), facts_(facts), parts_(plan, node, seen) {}

  AuditReport run();

 private:
  /// A process with everything known about it.
  struct Case {
    pid_t pid;
    const ObservedProcess& process;
    const Standing& place;
    const plan::Role& role;
    Files expected;  ///< preloaded by its role
    Uses nccl;       ///< all mapped copies

    [[nodiscard]] bool uses_any() const {
      return std::ranges::any_of(nccl, [](const auto& copy) { return copy.use != Use::mapped; });
    }
    [[nodiscard]] std::ptrdiff_t bound_copies() const {
      return std::ranges::count(nccl, Use::bound, &LibraryUse::use);
    }
  };

  [[nodiscard]] bool may_yet_be_another(const Case& it) const;
  void judge(const Case& it);
  void judge_foreign(const Case& it);
  void judge_copies(const Case& it);
  void judge_preload(const Case& it);
  void list(const Case& it, bool has_findings);
  void list_unseen();
  void judge_versions(const plan::Group& group);

  [[nodiscard]] Files expected_of(std::uint32_t role) const;
  [[nodiscard]] Uses uses_of(const ObservedProcess& process, const plan::Role& role) const;
  [[nodiscard]] static bool uses(const Case& it, const sys::MappedFile& file);
  [[nodiscard]] std::string bound_to(const Case& it) const;
  [[nodiscard]] std::string reason_unknown(const Case& it) const;
  [[nodiscard]] bool was_started(const plan::BoundProcess& bound, const plan::Role& role) const;
  [[nodiscard]] const plan::Role* other_owner(const Case& it, const sys::MappedFile& file) const;
  [[nodiscard]] std::string reason_unseen(const plan::BoundProcess& bound, const plan::Role& role) const;
  [[nodiscard]] std::string version(const sys::MappedFile& file) const;
  [[nodiscard]] std::string text(const sys::MappedFile& file) const;
  [[nodiscard]] std::string name(const Case& it) const;
  [[nodiscard]] std::string command(const Case& it) const;
  [[nodiscard]] std::string who(const Case& it) const;
  [[nodiscard]] static std::string remedy(const plan::Role& role);
  void find(AuditFinding::Kind kind, const Case& it, std::string message);

  const plan::Plan& plan_;
  const plan::BoundNode& node_;
  const Observations& seen_;
  const AuditFacts& facts_;
  Parts parts_;
  AuditReport report_;
};

AuditReport Judge::run() {
  report_.host = node_.host;
  for (const auto& [id, process] : seen_) {
    const auto& place = parts_.of(id);
    const auto& role = plan_.roles[place.role];
    judge({id.pid, process, place, role, expected_of(place.role), uses_of(process, role)});
  }
  list_unseen();
  for (const auto& group : plan_.groups) judge_versions(group);
  return std::move(report_);
}

/// A process that will become one of another role may have that role's preload before its command line shows
/// it.
bool Judge::may_yet_be_another(const Case& it) const {
  return it.process.young && it.place.part == Part::helper && it.role.spawned_by.empty() &&
         std::ranges::any_of(plan_.roles, [&](const plan::Role& role) {
           return std::ranges::find(role.spawned_by, it.role.name) != role.spawned_by.end();
         });
}

void Judge::judge(const Case& it) {
  if (may_yet_be_another(it)) return;
  const auto* parent = it.place.forked_from;
  const bool as_parent = parent && is_within(it.process.libraries, parent->libraries) &&
                         is_within(bound_of(it.process), bound_of(*parent));
  if (as_parent) return;
  const auto before = report_.findings.size();
  judge_foreign(it);
  judge_copies(it);
  judge_preload(it);
  list(it, report_.findings.size() > before);
}

/// All copies of libnccl in a process, and which of them it uses.
Uses Judge::uses_of(const ObservedProcess& process, const plan::Role& role) const {
  const auto named = facts_.named_library.find(role.name);
  Uses all;
  for (const auto& file : nccl_of(process)) {
    LibraryUse one{file, version(file)};
    for (const auto& object : process.bindings) {
      if (std::ranges::any_of(object.targets,
                              [&](const auto& target) { return same_file(target.file, file); }))
        one.by.push_back(object.object.path);
    }
    if (!one.by.empty()) {
      one.use = Use::bound;
    } else if (named != facts_.named_library.end() && same_file(named->second, file)) {
      one.use = Use::named;
    }
    all.push_back(std::move(one));
  }
  if (all.size() == 1 && all.front().use == Use::mapped && bound_of(process).empty())
    all.front().use = Use::only;
  return all;
}

/// NCCL counts if it is used, any other library if it is mapped.
bool Judge::uses(const Case& it, const sys::MappedFile& file) {
  if (!is_nccl(file)) return contains(it.process.libraries, file);
  return std::ranges::any_of(
      it.nccl, [&](const auto& one) { return one.use != Use::mapped && same_file(one.file, file); });
}

/// A mapped copy counts as long as nothing is bound: it may have been preloaded, and will be bound then.
void Judge::judge_foreign(const Case& it) {
  for (const auto& file : it.process.libraries) {
    const auto* owner = other_owner(it, file);
    if (owner && (uses(it, file) || !it.uses_any())) {
      find(AuditFinding::Kind::foreign, it,
           fmt::format("{} has the {}'s {}{}", who(it), owner->name, text(file), remedy(it.role)));
    }
  }
}

/// For processes whose environment comes from another process: the usual mistake.
std::string Judge::remedy(const plan::Role& role) {
  if (role.spawned_by.empty()) return "";
  return fmt::format(
      "; its parent passes on LD_PRELOAD, for example with all of os.environ: pass it "
      "${{role.{}.env_file}} instead",
      role.name);
}

/// The role that preloads this file, if this process should not have it.
const plan::Role* Judge::other_owner(const Case& it, const sys::MappedFile& file) const {
  if (contains(it.expected, file)) return nullptr;
  const auto own = facts_.own_library.find(it.role.name);
  if (own != facts_.own_library.end() && own->second == file.path) return nullptr;
  for (std::uint32_t role = 0; role < plan_.roles.size(); ++role) {
    if (contains(expected_of(role), file)) return &plan_.roles[role];
  }
  return nullptr;
}

void Judge::judge_copies(const Case& it) {
  if (it.bound_copies() < 2) return;
  find(AuditFinding::Kind::two_copies, it,
       fmt::format("{} is bound to {} copies of libnccl: {}", who(it), it.bound_copies(), bound_to(it)));
}

/// "libtorch_cuda.so to libnccl 2.28.9 (/opt/nccl/libnccl.so.2) and nccl.so to libnccl ..."; for an object
/// that is bound to several copies also the functions.
std::string Judge::bound_to(const Case& it) const {
  std::vector<std::string> parts;
  for (const auto& [object, targets, unbound] : it.process.bindings) {
    for (const auto& target : targets) {
      const auto functions = targets.size() > 1 ? fmt::format(" ({})", some_of(target.functions)) : "";
      parts.push_back(fmt::format("{}{} to {}", file_name_of(object.path), functions, text(target.file)));
    }
  }
  return text::join(parts, " and ");
}

void Judge::judge_preload(const Case& it) {
  const bool tree = it.role.scope == PreloadScope::tree;
  const bool must_have =
      it.place.part == Part::program || (tree && it.place.part == Part::helper && !it.nccl.empty());
  for (const auto& file : it.expected) {
    const bool has = contains(it.process.libraries, file);
    if (must_have && !has && it.process.loaded) {
      const auto instead =
          it.nccl.empty() ? std::string("no libnccl is mapped") : "it has " + text(it.nccl.front().file);
      find(AuditFinding::Kind::missing, it,
           fmt::format("{} lacks {}, which '{}' preloads; {}", who(it), text(file), it.role.name, instead));
    }
    if (must_have && has && !uses(it, file) && it.bound_copies() > 0) {
      find(AuditFinding::Kind::not_bound, it,
           fmt::format("{} has {} mapped, which '{}' preloads, but is not bound to it: {}", who(it),
                       text(file), it.role.name, bound_to(it)));
    }
    if (has && it.process.preloads && it.place.part == Part::helper && !tree) {
      find(
          AuditFinding::Kind::helper, it,
          fmt::format("{}, a helper started by the program, has the preloaded {}; with 'scope: process' only "
                      "the program should",
                      who(it), text(file)));
    }
  }
}

void Judge::list(const Case& it, bool has_findings) {
  const auto part = it.place.part;
  const bool does_work = part == Part::program || part == Part::helper;
  const bool must_prove = part == Part::program && !it.expected.empty();
  if (!has_findings && !must_prove && !(does_work && !it.nccl.empty())) return;
  const bool as_preloaded = !it.expected.empty() && std::ranges::all_of(it.expected, [&](const auto& file) {
    return uses(it, file);
  });
  AuditEntry entry{.name = name(it),
                   .role = it.role.name,
                   .process = it.place.process,
                   .pid = it.pid,
                   .command = command(it),
                   .part = part,
                   .proof = Proof::own,
                   .libraries = it.nccl,
                   .reason = {}};
  for (const auto& file : it.process.libraries) {
    if (!is_nccl(file)) entry.libraries.push_back({file, ""});
  }
  if (has_findings) {
    entry.proof = Proof::finding;
  } else if (as_preloaded) {
    entry.proof = Proof::as_preloaded;
  } else if (must_prove || !it.uses_any()) {
    entry.proof = Proof::unknown;
    entry.reason = reason_unknown(it);
  }
  report_.entries.push_back(std::move(entry));
}

std::string Judge::reason_unknown(const Case& it) const {
  if (it.process.argv.empty()) return "its maps could not be read, or it had exited";
  if (!it.process.loaded) return "no libc is mapped: the program is still being loaded, or it is static";
  std::vector<std::string> copies;
  for (const auto& copy : it.nccl) copies.push_back(text(copy.file));
  const auto mapped =
      fmt::format("{} {} mapped", text::join(copies, " and "), copies.size() == 1 ? "is" : "are");
  if (!it.process.unreadable.empty()) return fmt::format("{}; {}", mapped, it.process.unreadable);
  if (it.process.bindings.empty()) return fmt::format("{}, and no object imports NCCL", mapped);
  const auto bound = bound_to(it);
  if (bound.empty()) return fmt::format("{}, and no function of NCCL is bound yet", mapped);
  return fmt::format("{}; bindings: {}", mapped, bound);
}

/// Lists processes that should have a libnccl, or probably do, and of which nothing was seen.
void Judge::list_unseen() {
  for (const auto& bound : node_.processes) {
    const auto& role = plan_.role_of(plan_.processes[bound.process]);
    if (!was_started(bound, role)) continue;
    const bool likely = computes(role.kind) && role.gpus > 0 && !plan_.node.cpu_slots;
    if (bound.preload.empty() && !likely) continue;
    const bool listed = std::ranges::any_of(report_.entries, [&](const auto& entry) {
      return entry.process ? *entry.process == bound.process : entry.role == role.name;
    });
    if (listed) continue;
    AuditEntry entry;
    entry.name = bound.name;
    entry.role = role.name;
    entry.process = bound.process;
    entry.reason = reason_unseen(bound, role);
    report_.entries.push_back(std::move(entry));
  }
}

/// For a role spawned by others: whether one of those was started.
bool Judge::was_started(const plan::BoundProcess& bound, const plan::Role& role) const {
  if (role.spawned_by.empty()) return facts_.started.contains(bound.process);
  return std::ranges::any_of(facts_.started, [&](std::uint32_t process) {
    const auto& spawner = plan_.role_of(plan_.processes[process]).name;
    return std::ranges::find(role.spawned_by, spawner) != role.spawned_by.end();
  });
}

std::string Judge::reason_unseen(const plan::BoundProcess& bound, const plan::Role& role) const {
  if (!role.spawned_by.empty()) {
    return role.classify.empty() ? "the role has no 'classify' to recognize its processes"
                                 : fmt::format("no process that matches '{}' was seen", role.classify);
  }
  const auto root =
      std::ranges::find_if(seen_, [&](const auto& entry) { return entry.second.owner == bound.process; });
  if (root == seen_.end()) return "none of its processes was seen";
  if (!bound.preload.empty()) return "only wrappers of its program were seen so far";
  return "no libnccl is mapped: not loaded yet, or linked statically";
}

/// NCCL, for example, refuses a communicator whose ranks have different versions.
void Judge::judge_versions(const plan::Group& group) {
  const auto& backend = traits_of(group.backend);
  if (backend.library.empty()) return;
  std::map<std::string, std::string> first;  // version → process
  std::set<std::uint32_t> members;
  for (const auto& member : group.members) members.insert(member.process);
  for (const auto& entry : report_.entries) {
    const bool counts = entry.process && members.contains(*entry.process) && entry.part == Part::program;
    if (!counts) continue;
    Uses used;
    std::ranges::copy_if(entry.libraries, std::back_inserter(used),
                         [](const auto& library) { return library.use != Use::mapped; });
    if (used.size() == 1 && !used.front().version.empty())
      first.try_emplace(used.front().version, entry.name);
  }
  if (first.size() < 2) return;
  std::vector<std::string> have;
  for (const auto& [number, process] : first) have.push_back(fmt::format("{} has {}", process, number));
  report_.findings.push_back({AuditFinding::Kind::versions_differ, group.name, 0,
                              fmt::format("{}: {}; all ranks of a communicator need the same version of {}",
                                          group.name, text::join(have, ", "), backend.title)});
}

Files Judge::expected_of(std::uint32_t role) const {
  const auto bound = std::ranges::find_if(
      node_.processes, [&](const auto& process) { return plan_.processes[process.process].role == role; });
  Files files;
  if (bound == node_.processes.end()) return files;
  for (const auto& path : bound->preload) {
    const auto found = facts_.preloaded.find(path);
    files.push_back(found == facts_.preloaded.end() ? sys::MappedFile{path, "", 0, false} : found->second);
  }
  return files;
}

std::string Judge::version(const sys::MappedFile& file) const {
  const auto found = facts_.versions.find(file.seen_from_here());
  return found == facts_.versions.end() ? "" : found->second;
}

std::string Judge::text(const sys::MappedFile& file) const {
  if (!is_nccl(file)) return file.path;
  const auto number = version(file);
  return fmt::format("libnccl {}{}({}{}{})", number, number.empty() ? "" : " ", file.path,
                     file.root.empty() ? "" : " in its container", file.deleted ? ", deleted" : "");
}

std::string Judge::name(const Case& it) const {
  return it.place.process ? plan_.name_of(plan_.processes[*it.place.process]) : it.role.name;
}

std::string Judge::command(const Case& it) const {
  constexpr std::size_t kLongest = 60;
  auto whole = text::printable(node_.masker.mask(command_text(it.process)));
  if (whole.size() > kLongest) whole.replace(kLongest - 3, std::string::npos, "...");
  return whole;
}

std::string Judge::who(const Case& it) const {
  return fmt::format("{} (pid {}, {})", name(it), it.pid, command(it));
}

void Judge::find(AuditFinding::Kind kind, const Case& it, std::string message) {
  report_.findings.push_back({kind, name(it), it.pid, std::move(message)});
}

}  // namespace

std::vector<std::string> mapped_nccl(const Observations& seen) {
  std::set<std::string> paths;
  for (const auto& [id, process] : seen) {
    for (const auto& file : nccl_of(process)) paths.insert(file.seen_from_here());
  }
  return {paths.begin(), paths.end()};
}

AuditReport judge(const plan::Plan& plan, const plan::BoundNode& node, const Observations& seen,
                  const AuditFacts& facts) {
  return Judge(plan, node, seen, facts).run();
}

}  // namespace nlaunch::launch
