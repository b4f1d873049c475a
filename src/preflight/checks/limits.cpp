#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

/// Network cards register the memory that they read and write; a GPU on the same node needs no locked memory.
Row judge_memlock(const NodeObservations& observations) {
  const auto& limit = observations.machine.memlock;
  const auto value = limit ? size_text(*limit) : "unlimited";
  const bool over_a_fabric = observations.plan.node.count > 1 && observations.has_gpus();
  constexpr std::uint64_t kForAFabric = 16 * kGiB;
  if (!over_a_fabric || !limit || *limit >= kForAFabric) return passed("limits", "memlock", value);
  return failed("limits", "memlock", value, "unlimited, or at least 16 GiB",
                {"network cards cannot register memory: raise `ulimit -l` in limits.conf and, for Slurm, "
                 "LimitMEMLOCK=infinity of slurmd",
                 Responsible::admin});
}

Row judge_nofile(const NodeObservations& observations) {
  const auto& limit = observations.machine.nofile;
  constexpr std::uint64_t kComfortable = 4096;
  constexpr std::uint64_t kLeast = 256;
  const auto value = limit ? fmt::format("{}", *limit) : "unlimited";
  if (!limit || *limit >= kComfortable) return passed("limits", "open files", value);
  auto row = warned("limits", "open files", value, "at least 4096", {"raise it: ulimit -n 65536"});
  if (*limit < kLeast) row.status = Status::fail;
  return row;
}

/// NCCL and PyTorch's data loaders put buffers there; with too little space a process dies of SIGBUS.
Row judge_shm(const NodeObservations& observations) {
  const auto& free = observations.machine.shm_free;
  if (!free) {
    auto row = failed("limits", "/dev/shm", "does not exist", "a tmpfs", {"mount it", Responsible::admin});
    if (observations.ranks.empty()) row.status = Status::warn;
    return row;
  }
  const auto wanted =
      std::max<std::uint64_t>(1, observations.has_gpus() ? observations.ranks.size() : 1) * kGiB;
  const auto value = size_text(*free) + " free";
  if (*free >= wanted) return passed("limits", "/dev/shm", value);
  constexpr std::uint64_t kLeast = 128 * kMiB;
  auto row =
      warned("limits", "/dev/shm", value, size_text(wanted) + " free",
             {"in a container: --shm-size or --ipc=host; otherwise remove leftover files in /dev/shm"});
  if (*free < kLeast) row.status = Status::fail;
  return row;
}

/// Threads count: a rank has hundreds, a Ray node thousands.
Row judge_nproc(const NodeObservations& observations) {
  const auto& limit = observations.machine.nproc;
  constexpr std::uint64_t kComfortable = 4096;
  const auto value = limit ? fmt::format("{}", *limit) : "unlimited";
  if (!limit || *limit >= kComfortable) return passed("limits", "processes", value);
  return warned("limits", "processes", value, "at least 4096, including threads",
                {"raise it: ulimit -u 65536"});
}

Row judge_core(const NodeObservations& observations) {
  const auto& limit = observations.machine.core;
  const auto value = !limit        ? "unlimited"
                     : *limit == 0 ? "0: a crash writes no core file"
                                   : size_text(*limit);
  return passed("limits", "core", value);
}

/// libfabric opens it for all faults before 2.0.0, and only for user mode faults since
/// (prov/util/src/util_mem_monitor.c). The cxi provider does not start without the requested monitor; others
/// continue without a cache of registrations.
void judge_userfaultfd(const NodeObservations& observations, std::vector<Row>& rows) {
  const auto& can = observations.machine.userfaultfd;
  for (const auto& [role, process] : observations.first_of_roles()) {
    const auto asked = variable_of(*process, "FI_MR_CACHE_MONITOR");
    if (can.empty() || (asked != "userfaultfd" && asked != "uffd")) continue;
    const auto& name = observations.plan.roles[role].name;
    const auto subject = name + "'s userfaultfd";
    const auto* fabric = observations.answer("fabric/" + name);
    const bool known = fabric != nullptr && fabric->said.is_object();
    const auto version = parse_version(known ? fabric->said.value("version", "") : "");
    if (can == "all" || (can == "user mode" && version && *version >= Version{{2}})) {
      rows.push_back(passed("limits", subject, "can be opened"));
      continue;
    }
    const auto value =
        can == "none"
            ? std::string("cannot be opened: vm.unprivileged_userfaultfd is 0, or a container forbids it")
            : fmt::format("only in user mode, which libfabric {} does not request",
                          version ? version->str() : "before 2.0");
    auto row = failed("limits", subject, value, "what FI_MR_CACHE_MONITOR=userfaultfd needs",
                      {"set FI_MR_CACHE_MONITOR=kdreg2 where that module is loaded, or sysctl "
                       "vm.unprivileged_userfaultfd=1"});
    const bool certain = can == "none" || version.has_value();
    if (observations.planned().nic_kind != "cxi" || observations.plan.node.count < 2 || !certain)
      row.status = Status::warn;
    rows.push_back(std::move(row));
  }
}

std::vector<Row> check_limits(const NodeObservations& observations) {
  if (!observations.machine.error.empty())
    return {unknown("limits", "this machine", observations.machine.error)};
  std::vector<Row> rows{judge_memlock(observations), judge_nofile(observations), judge_nproc(observations),
                        judge_core(observations), judge_shm(observations)};
  judge_userfaultfd(observations, rows);
  return rows;
}

const Registered<NodeCheck> limits_check{{
    .order = 160,
    .name = "limits",
    .what = "locked memory, open files, processes and shared memory are sufficient; userfaultfd where it is "
            "requested",
    .judge = check_limits,
}};

/// What frees the port, and what makes the role need no fixed one.
std::string how_to_free(const plan::Plan& plan, const PortFact& port) {
  const auto remedy =
      port.remedy.empty() ? std::string("stop what holds it (ss -ltnp shows it)") : port.remedy;
  const auto* role = plan.find_role(port.process.substr(0, port.process.find('.')));
  if (role == nullptr || role->origin.empty()) return remedy + ", or choose another port";
  return fmt::format(
      "{}, or write `ports: [http]` in role '{}' ({}) and use ${{self.ports.http}} in its command ({})",
      remedy, role->name, role->origin, role->command_origin);
}

std::vector<Row> check_ports(const NodeObservations& observations) {
  std::vector<Row> rows;
  std::string free;
  for (const auto& port : observations.ports) {
    if (port.error.empty()) {
      free += fmt::format("{}{}", free.empty() ? "" : ", ", port.port);
    } else {
      rows.push_back(failed("ports", port.process,
                            fmt::format("port {}: {}{}", port.port, port.error,
                                        port.holder.empty() ? "" : fmt::format(", held by {}", port.holder)),
                            "free", {how_to_free(observations.plan, port)}));
      if (!port.sure) rows.back().status = Status::warn;
    }
  }
  if (!free.empty()) rows.push_back(passed("ports", "this machine", free, "free"));
  return rows;
}

const Registered<NodeCheck> ports_check{{
    .order = 170,
    .name = "ports",
    .what = "the ports of the plan are reserved for it, and the ports that commands give by number are free",
    .judge = check_ports,
}};

Row judge_room(const std::string& subject, std::uint64_t free) {
  const auto value = size_text(free) + " free";
  constexpr std::uint64_t kLeast = 100 * kMiB;
  if (free >= kGiB) return passed("space", subject, value);
  auto row = warned("space", subject, value, "1 GiB free", {"free some space, or choose another directory"});
  if (free < kLeast) row.status = Status::fail;
  return row;
}

/// NCCL and PyTorch's data loaders put buffers into shared memory; without ranks, it may not be needed.
Row judge_shared_memory(const std::string& subject, const std::string& error, bool has_ranks) {
  auto row = failed("space", subject, error, "a writable directory",
                    {"NCCL and PyTorch's data loaders put buffers there: request access to it"});
  if (!has_ranks) row.status = Status::warn;
  return row;
}

Row judge_folder(const Folder& folder, const Answer& answer, bool has_ranks) {
  const auto subject = fmt::format("{} {}", folder.what, folder.path);
  if (!answer.error.empty()) {
    const bool hangs = answer.error.contains("did not answer");
    return unknown("space", subject, answer.error + (hangs ? ": its file system may hang" : ""));
  }
  const auto error = answer.said.value("error", "");
  const bool only_looked_at = folder.use == Folder::Use::look;
  if (only_looked_at && answer.said.value("read_only", false)) return passed("space", subject, error);
  if (!error.empty() && folder.use == Folder::Use::write)
    return judge_shared_memory(subject, error, has_ranks);
  if (!error.empty()) {
    return failed("space", subject, error, only_looked_at ? "an existing directory" : "a writable directory",
                  {"choose another one, or request access"});
  }
  constexpr double kSlow = 1;  // seconds
  if (const auto seconds = answer.said.value("seconds", 0.0); seconds > kSlow) {
    return warned("space", subject, fmt::format("writing a file of 4 KiB took {:.1f} s", seconds),
                  "less than 1 s",
                  {"its file system is overloaded or faulty: choose another one, or report it"});
  }
  const auto free = answer.said.value("free", std::uint64_t{0});
  return folder.use == Folder::Use::fill ? judge_room(subject, free)
                                         : passed("space", subject, size_text(free) + " free");
}

std::vector<Row> check_space(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& folder : observations.folders) {
    const auto* answer = observations.answer("folder/" + folder.path);
    if (answer == nullptr) continue;
    auto row = judge_folder(folder, *answer, !observations.ranks.empty());
    // Whether /dev/shm exists and is large enough is checked among the limits.
    const bool told =
        folder.use == Folder::Use::write && (row.status == Status::pass || !observations.machine.shm_free);
    if (!told) rows.push_back(std::move(row));
  }
  return rows;
}

const Registered<NodeCheck> space_check{{
    .order = 180,
    .name = "space",
    .what = "the run's directories have free space, and a small file is written there in time",
    .judge = check_space,
}};

std::vector<std::string> folders_of_run(const NodeObservations& observations) {
  std::vector<std::string> out;
  for (const auto& folder : observations.folders) out.push_back(folder.path);
  return out;
}

const Registered<Inquiry> folder_inquiry{{
    .name = "folder",
    .deadline = std::chrono::seconds(10),
    .of = Inquiry::Of::things,
    .things = folders_of_run,
}};

using nlohmann::json;
constexpr auto kSharedMemory = "shared-memory";

/// A program creates its file a moment before it maps it.
constexpr std::int64_t kNewFile = 60;

std::uint64_t bytes_of_files(const std::vector<json>& files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.value("bytes", std::uint64_t{0});
  return sum;
}

/// "3 files, 33.1 MiB: nccl-AbCdEf (32.0 MiB, 2 h old), ..."
std::string programs_list(const std::vector<json>& files) {
  constexpr std::size_t kShown = 3;
  std::string out =
      fmt::format("{}, {}: ", text::count(files.size(), "file"), size_text(bytes_of_files(files)));
  for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i) {
    out += fmt::format("{}{} ({}, {} old)", i == 0 ? "" : ", ", text::printable(files[i].value("name", "")),
                       size_text(files[i].value("bytes", std::uint64_t{0})),
                       age_text(files[i].value("age", 0.0)));
  }
  return files.size() > kShown ? out + ", ..." : out;
}

/// By their prefixes if there are many.
std::string removal_command(const std::string& folder, const std::vector<json>& files) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> argv{"rm"};
  for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i)
    argv.push_back(folder + "/" + files[i].value("name", ""));
  return text::shell_join(argv) + (files.size() > kShown ? " ..." : "");
}

std::vector<Row> check_shared_memory(const NodeObservations& observations) {
  const auto* answer = observations.answer(kSharedMemory);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kSharedMemory, "/dev/shm", answer->error)};
  const auto folder = answer->said.value("folder", "");
  std::vector<json> hidden;
  std::vector<json> own;
  std::map<std::string, std::vector<json>> of_others;
  for (const auto& file : answer->said.value("files", json::array())) {
    if (file.at("used").is_null()) {
      hidden.push_back(file);
    } else if (!file.at("used").get<bool>() && file.value("age", std::int64_t{0}) >= kNewFile) {
      (file.value("mine", false) ? own : of_others[file.value("user", "")]).push_back(file);
    }
  }
  constexpr auto kExpected = "nothing left by programs that have exited";
  std::vector<Row> rows;
  if (!own.empty())
    rows.push_back(warned(kSharedMemory, folder, programs_list(own), kExpected,
                          {"remove them: " + removal_command(folder, own)}));
  for (const auto& [user, files] : of_others) {
    rows.push_back(warned(kSharedMemory, fmt::format("{}, of {}", folder, user), programs_list(files),
                          kExpected,
                          {fmt::format("{} or an administrator can remove them", user), Responsible::admin}));
  }
  if (!hidden.empty()) {
    rows.push_back(skipped(
        kSharedMemory, folder,
        fmt::format("{}; whether a program uses them is unknown, because other processes are hidden here",
                    programs_list(hidden))));
  }
  if (rows.empty()) rows.push_back(passed(kSharedMemory, folder, kExpected));
  return rows;
}

const Registered<NodeCheck> shared_memory_check{{
    .order = 70,
    .name = kSharedMemory,
    .what = "no program that has exited left its buffers in /dev/shm",
    .judge = check_shared_memory,
}};

const Registered<Inquiry> shared_memory_inquiry{{.name = kSharedMemory}};

}  // namespace
}  // namespace nlaunch::preflight
