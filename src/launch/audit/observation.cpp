#include "launch/audit/observation.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/text.h"

namespace nlaunch::launch {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// libc.so.6, or libc-2.31.so before glibc 2.34.
bool is_libc(const sys::MappedFile& file) {
  const auto name = base_name(file.path);
  return name.starts_with("libc.so") || name.starts_with("libc-");
}

bool has(const std::vector<std::string>& environment, std::string_view assignment) {
  return std::ranges::any_of(environment, [&](const auto& entry) { return entry.starts_with(assignment); });
}

/// On a busy machine, a program run by an interpreter takes seconds to set its title.
bool is_young(const sys::ProcessInfo& info) {
  constexpr std::int64_t kYoung = 30;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec - static_cast<std::int64_t>(info.start_ticks) / ::sysconf(_SC_CLK_TCK) < kYoung;
}

/// A file in a container is identified only by device and inode, so these must be as returned by stat().
void identify(sys::MappedFile& file, const PreloadedFiles& preloaded) {
  const auto name = base_name(file.path);
  const bool concerns = is_nccl(file) || std::ranges::any_of(preloaded, [&](const auto& entry) {
                          return base_name(entry.first) == name || base_name(entry.second.path) == name;
                        });
  struct stat info {};
  if (!concerns || file.root.empty() || file.deleted) return;
  if (::stat(file.seen_from_here().c_str(), &info) != 0) return;
  file.device = sys::device_text(info.st_dev);
  file.inode = info.st_ino;
}

/// What can change while the memory size stays the same, for example a title that is set later.
void look_at_command(ObservedProcess& process, const sys::ProcessInfo& info) {
  process.executable = sys::executable(info.pid);
  process.argv = sys::command_line(info.pid);
  process.young = is_young(info);
}

ObservedProcess look_at(const sys::ProcessInfo& info, const PreloadedFiles& preloaded,
                        sys::BindingReader& bindings) {
  ObservedProcess look;
  look.stack_start = info.stack_start;
  look.memory_bytes = info.memory_bytes;
  look_at_command(look, info);
  const auto environment = sys::initial_environment(info.pid);
  look.rank = has(environment, "RANK=") && has(environment, "LOCAL_RANK=");
  look.preloads = has(environment, "LD_PRELOAD=");
  const auto mappings = sys::file_mappings(info.pid).value_or(std::vector<sys::Mapping>{});
  auto mapped = sys::files_of(mappings);
  look.loaded = std::ranges::any_of(mapped, is_libc);
  for (auto& file : mapped) identify(file, preloaded);
  std::erase_if(mapped, [&](const auto& file) {
    return !is_nccl(file) &&
           std::ranges::none_of(preloaded, [&](const auto& entry) { return same_file(entry.second, file); });
  });
  look.libraries = std::move(mapped);
  if (std::ranges::none_of(look.libraries, is_nccl)) return look;
  if (auto bound = bindings.read(info.pid, mappings)) {
    look.bindings = std::move(*bound);
  } else {
    look.unreadable = bound.error().first_message();
  }
  for (auto& object : look.bindings) {
    for (auto& target : object.targets) identify(target.file, preloaded);
  }
  return look;
}

/// Another look would show nothing new.
bool is_as_known(const ObservedProcess& known, const sys::ProcessInfo& now) {
  if (known.stack_start != now.stack_start) return false;
  const auto waits = [](const sys::ObjectBindings& object) { return object.targets.empty(); };
  if (!known.bindings.empty()) return std::ranges::none_of(known.bindings, waits);
  return known.loaded && known.memory_bytes == now.memory_bytes;
}

/// All processes of this machine and their parents.
struct Snapshot {
  std::map<pid_t, sys::ProcessInfo> processes = sys::all_processes();
  std::multimap<pid_t, pid_t> children;

  Snapshot() {
    for (const auto& [pid, info] : processes) children.emplace(info.parent, pid);
  }
  [[nodiscard]] sys::ProcessId id(pid_t pid) const {
    const auto found = processes.find(pid);
    return found == processes.end() ? sys::ProcessId{} : sys::ProcessId{pid, found->second.start_ticks};
  }
};

struct Member {
  sys::ProcessId id;
  std::uint32_t owner = 0;
};

/// The roots, known processes and all their descendants, each once; parents come before their children.
std::vector<Member> members(const Snapshot& now, const Observations& seen,
                            const std::map<std::uint32_t, pid_t>& roots) {
  std::vector<Member> found;
  std::set<sys::ProcessId> taken;
  const auto add = [&](sys::ProcessId id, std::uint32_t owner) {
    if (id.pid != 0 && taken.insert(id).second) found.push_back({id, owner});
  };
  std::size_t next = 0;
  const auto add_children = [&] {
    for (; next < found.size(); ++next) {
      const auto parent = found[next];
      const auto [first, last] = now.children.equal_range(parent.id.pid);
      for (auto child = first; child != last; ++child) add(now.id(child->second), parent.owner);
    }
  };
  for (const auto& [owner, pid] : roots) add(now.id(pid), owner);
  add_children();
  for (const auto& [id, process] : seen) {
    if (now.id(id.pid) == id) add(id, process.owner);
  }
  add_children();
  return found;
}

}  // namespace

std::optional<sys::MappedFile> file_of(const std::string& path) {
  struct stat info {};
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error || ::stat(real.c_str(), &info) != 0) return std::nullopt;
  return sys::MappedFile{real.string(), sys::device_text(info.st_dev), info.st_ino, false};
}

PreloadedFiles preloaded_files(const plan::BoundNode& node) {
  PreloadedFiles files;
  for (const auto& process : node.processes) {
    for (const auto& path : process.preload) {
      if (auto file = file_of(path)) files[path] = std::move(*file);
    }
  }
  return files;
}

bool same_file(const sys::MappedFile& a, const sys::MappedFile& b) {
  if (a.inode == b.inode && a.device == b.device) return true;
  return a.path == b.path && a.root.empty() && b.root.empty() && !a.deleted && !b.deleted;
}

bool is_nccl(const sys::MappedFile& file) {
  const auto name = base_name(file.path);
  return name.starts_with("libnccl") && !name.starts_with("libnccl-") &&
         name.find(".so") != std::string_view::npos;
}

sys::BindingReader nccl_bindings() {
  return sys::BindingReader("nccl");
}

void observe(Observations& seen, const std::map<std::uint32_t, pid_t>& roots, const PreloadedFiles& preloaded,
             sys::BindingReader& bindings, Thoroughness thoroughness) {
  const Snapshot now;
  for (const auto& [id, owner] : members(now, seen, roots)) {
    const auto& info = now.processes.at(id.pid);
    const auto known = seen.find(id);
    if (thoroughness == Thoroughness::changes && known != seen.end() && is_as_known(known->second, info)) {
      auto look = known->second;
      look_at_command(look, info);
      merge(seen, id, std::move(look));
      continue;
    }
    auto look = look_at(info, preloaded, bindings);
    look.owner = owner;
    look.parent = now.id(info.parent);
    merge(seen, id, std::move(look));
  }
}

void merge(Observations& seen, sys::ProcessId id, ObservedProcess look) {
  const auto [known, is_new] = seen.try_emplace(id, look);
  auto& process = known->second;
  if (is_new || look.argv.empty()) return;
  look.owner = process.owner;
  look.parent = process.parent;
  if (look.stack_start == process.stack_start) {
    look.loaded = look.loaded || process.loaded;
    for (const auto& file : process.libraries) {
      if (std::ranges::none_of(look.libraries, [&](const auto& has) { return same_file(has, file); })) {
        look.libraries.push_back(file);
      }
    }
    if (look.bindings.empty()) look.bindings = std::move(process.bindings);
  }
  process = std::move(look);
}

}  // namespace nlaunch::launch
