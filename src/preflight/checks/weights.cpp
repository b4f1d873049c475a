#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "plan/groups.h"
#include "preflight/checks.h"

// How weights get to the engines without a group of ranks that sends them. Groups are tried as such.
namespace nlaunch::preflight {
namespace {

constexpr auto kWeights = "weights";

Row judge_shared_folder(const SharedFolder& folder) {
  constexpr Duration kSlow = std::chrono::seconds(5);
  const auto subject = fmt::format("{}, {}", folder.group, folder.path);
  if (!folder.error.empty()) {
    return failed(
        kWeights, subject, folder.error,
        fmt::format("a directory that {}'s node can write to and the engines' nodes can see", folder.writer),
        {"set a directory on a file system that these nodes share: `weight_sync: {backend: disk, path: "
         "...}`"});
  }
  if (folder.writes && folder.silent > 0) {
    return unknown(kWeights, subject,
                   fmt::format("files from {} of {} with engines were not seen here", folder.silent,
                               text::count(folder.readers, "other node")));
  }
  if (folder.writes) {
    return passed(kWeights, subject,
                  folder.readers == 0
                      ? fmt::format("the engines are on the node of {}, which can write there", folder.writer)
                      : fmt::format("{} writes there for {}", folder.writer,
                                    text::count(folder.readers, "other node")));
  }
  const auto value = fmt::format("files that {}'s node writes are seen here after {:.2f} s", folder.writer,
                                 std::chrono::duration<double>(folder.seen).count());
  if (folder.seen <= kSlow) return passed(kWeights, subject, value);
  return warned(kWeights, subject, value, "less than 5 s",
                {"every weight sync waits for this: the file system caches missing entries (NFS: mount with "
                 "lookupcache=positive); a group (backend: nccl) does not use files"});
}

/// NIXL is a package of the role's own Python.
Row judge_nixl(const NodeObservations& observations, std::uint32_t role, const std::string& group) {
  const auto& name = observations.plan.roles[role].name;
  const auto subject = fmt::format("{}, {}", group, name);
  if (!observations.pythons.at(role).named)
    return unknown(kWeights, subject, "unknown whether it has NIXL: its command names no Python");
  const auto* answer = observations.answer("interpreter/" + name);
  if (answer == nullptr || !answer->error.empty() || answer->said.contains("error"))
    return unknown(kWeights, subject, "unknown whether its Python has NIXL");
  for (const auto& [package, version] :
       answer->said.value("packages", std::map<std::string, std::string>())) {
    if (package.starts_with("nixl")) return passed(kWeights, subject, fmt::format("{} {}", package, version));
  }
  return failed(kWeights, subject,
                fmt::format("{} has no NIXL", answer->said.value("executable", "its Python")),
                "a Python with NIXL",
                {"pip install nixl in the role's environment, or `weight_sync: {backend: nccl}`"});
}

/// From memory to memory between the Pythons of both sides, if both have NIXL.
Row judge_transfer(const NixlTransfer& found) {
  const auto subject = found.sends ? fmt::format("{}, from {}", found.group, found.process)
                                   : fmt::format("{}, {} to {}", found.group, found.sender, found.process);
  const Remedy remedy{
      "install the same release of `nixl` in both environments, and check the network between their nodes: "
      "UCX_LOG_LEVEL=info shows which devices and transports UCX uses, UCX_NET_DEVICES and UCX_TLS select "
      "others"};
  if (found.sender_lacks)
    return unknown(kWeights, subject, fmt::format("the Python of {} has no NIXL", found.sender));
  if (!found.error.empty()) return failed(kWeights, subject, found.error, "1 MiB over NIXL", remedy);
  if (!found.sends)
    return passed(kWeights, subject,
                  fmt::format("1 MiB over NIXL {} after {}", found.version, time_text(found.seconds)));
  const auto value = fmt::format("{} of {} got 1 MiB", found.served, text::count(found.receivers, "engine"));
  return found.served == found.receivers ? passed(kWeights, subject, value)
                                         : unknown(kWeights, subject, value);
}

std::vector<Row> check_weights(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& folder : observations.shared_folders) rows.push_back(judge_shared_folder(folder));
  for (const auto& transfer : observations.nixl) {
    // A Python without NIXL has a separate row.
    if (!transfer.lacks) rows.push_back(judge_transfer(transfer));
  }
  for (const auto& sync : observations.plan.weight_syncs) {
    if (sync.backend != SyncBackend::nixl) continue;
    for (const auto& [role, python] : observations.pythons) {
      if (computes(observations.plan.roles[role].kind))
        rows.push_back(judge_nixl(observations, role, plan::group_name(sync)));
    }
  }
  return rows;
}

const Registered<NodeCheck> weights_check{{
    .order = 185,
    .name = kWeights,
    .what = "files from the learner's node are seen on the engines' nodes, or NIXL transfers memory to them, "
            "where the weight sync uses them",
    .judge = check_weights,
}};

}  // namespace
}  // namespace nlaunch::preflight
