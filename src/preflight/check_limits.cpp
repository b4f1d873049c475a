#include <fmt/format.h>

#include <algorithm>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kGiB = 1U << 30U;

/// "1.5 GiB": people compare these, they do not compute with them.
std::string size_text(std::uint64_t bytes) {
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / double(kGiB));
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / double(kMiB));
  return fmt::format("{} kiB", bytes / 1024);
}

/// Network cards register the memory that they read and write; a GPU of the same node needs nothing locked.
Row judge_memlock(const NodeEvidence& evidence) {
  const auto& limit = evidence.machine.memlock;
  const auto value = limit ? size_text(*limit) : "unlimited";
  const bool over_a_fabric = evidence.plan.node.count > 1 && evidence.has_gpus();
  constexpr std::uint64_t kForAFabric = 16 * kGiB;
  if (!over_a_fabric || !limit || *limit >= kForAFabric) return passed("limits", "memlock", value);
  return failed("limits", "memlock", value, "unlimited, or 16 GiB and more",
                {"network cards cannot register memory: raise `ulimit -l` in limits.conf and, for Slurm, "
                 "LimitMEMLOCK=infinity of slurmd",
                 Who::admin});
}

Row judge_nofile(const NodeEvidence& evidence) {
  const auto& limit = evidence.machine.nofile;
  constexpr std::uint64_t kComfortable = 4096;
  constexpr std::uint64_t kLeast = 256;
  const auto value = limit ? fmt::format("{}", *limit) : "unlimited";
  if (!limit || *limit >= kComfortable) return passed("limits", "open files", value);
  auto row = warned("limits", "open files", value, "4096 and more", {"raise it: ulimit -n 65536"});
  if (*limit < kLeast) row.status = Status::fail;
  return row;
}

/// NCCL and PyTorch's data loaders put buffers there; with too little a process dies of SIGBUS.
Row judge_shm(const NodeEvidence& evidence) {
  const auto& free = evidence.machine.shm_free;
  if (!free) return failed("limits", "/dev/shm", "does not exist", "a tmpfs", {"mount it", Who::admin});
  const auto wanted = std::max<std::uint64_t>(1, evidence.has_gpus() ? evidence.ranks.size() : 1) * kGiB;
  const auto value = size_text(*free) + " free";
  if (*free >= wanted) return passed("limits", "/dev/shm", value);
  constexpr std::uint64_t kLeast = 128 * kMiB;
  auto row = warned("limits", "/dev/shm", value, size_text(wanted) + " free",
                    {"in a container: --shm-size or --ipc=host; else remove what is left in /dev/shm"});
  if (*free < kLeast) row.status = Status::fail;
  return row;
}

Row judge_folder(const FolderFact& folder) {
  const auto subject = fmt::format("{} {}", folder.what, folder.path);
  if (!folder.error.empty()) {
    return failed("space", subject, folder.error, "a folder that can be written to",
                  {"choose another one, or ask for access"});
  }
  const auto value = size_text(folder.free) + " free";
  constexpr std::uint64_t kLeast = 100 * kMiB;
  if (folder.free >= kGiB) return passed("space", subject, value);
  auto row = warned("space", subject, value, "1 GiB free", {"make room, or choose another folder"});
  if (folder.free < kLeast) row.status = Status::fail;
  return row;
}

}  // namespace

std::vector<Row> check_limits(const NodeEvidence& evidence) {
  if (!evidence.machine.error.empty()) return {unknown("limits", "this machine", evidence.machine.error)};
  return {judge_memlock(evidence), judge_nofile(evidence), judge_shm(evidence)};
}

std::vector<Row> check_ports(const NodeEvidence& evidence) {
  std::vector<Row> rows;
  std::string free;
  for (const auto& port : evidence.ports) {
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

std::vector<Row> check_space(const NodeEvidence& evidence) {
  std::vector<Row> rows;
  for (const auto& folder : evidence.folders) rows.push_back(judge_folder(folder));
  return rows;
}

}  // namespace nlaunch::preflight
