#include <fmt/format.h>

#include <algorithm>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

/// Network cards register the memory that they read and write; a GPU of the same node needs nothing locked.
Row judge_memlock(const NodeObservations& observations) {
  const auto& limit = observations.machine.memlock;
  const auto value = limit ? size_text(*limit) : "unlimited";
  const bool over_a_fabric = observations.plan.node.count > 1 && observations.has_gpus();
  constexpr std::uint64_t kForAFabric = 16 * kGiB;
  if (!over_a_fabric || !limit || *limit >= kForAFabric) return passed("limits", "memlock", value);
  return failed("limits", "memlock", value, "unlimited, or 16 GiB and more",
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
  auto row = warned("limits", "open files", value, "4096 and more", {"raise it: ulimit -n 65536"});
  if (*limit < kLeast) row.status = Status::fail;
  return row;
}

/// NCCL and PyTorch's data loaders put buffers there; with too little a process dies of SIGBUS.
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
  auto row = warned("limits", "/dev/shm", value, size_text(wanted) + " free",
                    {"in a container: --shm-size or --ipc=host; else remove what is left in /dev/shm"});
  if (*free < kLeast) row.status = Status::fail;
  return row;
}

/// Threads count: a rank has hundreds, a Ray node thousands.
Row judge_nproc(const NodeObservations& observations) {
  const auto& limit = observations.machine.nproc;
  constexpr std::uint64_t kComfortable = 4096;
  const auto value = limit ? fmt::format("{}", *limit) : "unlimited";
  if (!limit || *limit >= kComfortable) return passed("limits", "processes", value);
  return warned("limits", "processes", value, "4096 and more, threads included",
                {"raise it: ulimit -u 65536"});
}

Row judge_core(const NodeObservations& observations) {
  const auto& limit = observations.machine.core;
  const auto value = !limit        ? "unlimited"
                     : *limit == 0 ? "0: a crash leaves no core file"
                                   : size_text(*limit);
  return passed("limits", "core", value);
}

/// libfabric opens it for all faults before 2.0.0, and for those of user mode alone since
/// (prov/util/src/util_mem_monitor.c). The cxi provider does not start without the monitor that was asked
/// for; others go on without a cache of registrations.
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
            : fmt::format("only for user mode, which libfabric {} does not ask for",
                          version ? version->str() : "before 2.0");
    auto row = failed(
        "limits", subject, value, "what FI_MR_CACHE_MONITOR=userfaultfd needs",
        {"FI_MR_CACHE_MONITOR=kdreg2, where that module is loaded; or sysctl vm.unprivileged_userfaultfd=1"});
    const bool certain = can == "none" || version.has_value();
    if (observations.plan.node.nic_kind != "cxi" || observations.plan.node.count < 2 || !certain)
      row.status = Status::warn;
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<Row> check_limits(const NodeObservations& observations) {
  if (!observations.machine.error.empty())
    return {unknown("limits", "this machine", observations.machine.error)};
  std::vector<Row> rows{judge_memlock(observations), judge_nofile(observations), judge_nproc(observations),
                        judge_core(observations), judge_shm(observations)};
  judge_userfaultfd(observations, rows);
  return rows;
}

std::vector<Row> check_ports(const NodeObservations& observations) {
  std::vector<Row> rows;
  std::string free;
  for (const auto& port : observations.ports) {
    if (port.error.empty()) {
      free += fmt::format("{}{}", free.empty() ? "" : ", ", port.port);
    } else {
      rows.push_back(failed("ports", port.process, fmt::format("port {}: {}", port.port, port.error), "free",
                            {"end what holds it (ss -ltnp names it), or choose another port"}));
    }
  }
  if (!free.empty()) rows.push_back(passed("ports", "this machine", free, "free"));
  return rows;
}

}  // namespace nlaunch::preflight
