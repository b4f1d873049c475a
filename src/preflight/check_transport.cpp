#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/slow_settings.h"

namespace nlaunch::preflight {
namespace {

/// What the ranks of a group use to reach each other: "P2P", or "P2P and SHM" where pairs differ.
struct Chosen {
  std::set<std::string> within_node;
  std::set<std::string> between_nodes;
  std::string network;
  std::string error;
};

Chosen chosen_by(const Observations& observations, const GroupTrial& group) {
  Chosen chosen;
  for (const auto rank : group.members) {
    const auto found = observations.reports[rank].groups.find(group.name);
    if (found == observations.reports[rank].groups.end()) continue;
    const auto& progress = found->second;
    if (!progress.transport_error.empty()) chosen.error = progress.transport_error;
    if (!progress.network.empty()) chosen.network = progress.network;
    for (const auto& pair : progress.pairs) {
      if (pair.from >= group.members.size() || pair.to >= group.members.size()) continue;
      const bool one_node = observations.ranks[group.members[pair.from]].node ==
                            observations.ranks[group.members[pair.to]].node;
      (one_node ? chosen.within_node : chosen.between_nodes).insert(pair.via);
    }
  }
  return chosen;
}

std::string list(const std::set<std::string>& names) {
  return text::join(std::vector<std::string>(names.begin(), names.end()), " and ");
}

Row judge(const Observations& observations, const GroupTrial& group, const char* where,
          const std::set<std::string>& via, const std::string& expected) {
  const auto value = fmt::format("{} {}", list(via), where);
  if (expected.empty() || (via.size() == 1 && *via.begin() == expected)) {
    return passed("transport", group.name, value, expected);
  }
  const auto settings = slow_settings(observations, group);
  if (!settings.empty()) {
    return failed(
        "transport", group.name, value, expected,
        {fmt::format("{}: run without it (nlaunch env --explain says where it comes from)", settings)});
  }
  const bool network = expected.starts_with("NET");
  return failed(
      "transport", group.name, value, expected,
      network
          ? Remedy{"NCCL did not find its network plugin: is its folder in LD_LIBRARY_PATH, and NCCL_NET "
                   "set?"}
          : Remedy{"the GPUs cannot reach each other directly: nvidia-smi topo -p2p r; a container without "
                   "peer access, PCIe ACS or an IOMMU does this",
                   Responsible::admin});
}

}  // namespace

std::vector<Row> check_transport(const Observations& observations) {
  std::vector<Row> rows;
  if (!observations.went) return rows;
  for (const auto& group : observations.groups) {
    if (!group.transport || !group.not_run.empty()) continue;
    const auto chosen = chosen_by(observations, group);
    const auto& expected = observations.plan.expected;
    if (!chosen.within_node.empty()) {
      rows.push_back(judge(observations, group, "within a node", chosen.within_node, expected.intra_node));
    }
    if (!chosen.between_nodes.empty()) {
      rows.push_back(judge(observations, group, "between nodes", chosen.between_nodes, expected.inter_node));
    }
    const bool all_done =
        std::ranges::all_of(group.members, [&](auto rank) { return observations.reports[rank].done; });
    if (chosen.within_node.empty() && chosen.between_nodes.empty() && all_done) {
      rows.push_back(unknown("transport", group.name,
                             chosen.error.empty() ? "NCCL's log does not name one" : chosen.error));
    }
  }
  return rows;
}

std::vector<Row> check_leftovers(const Observations& observations) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < observations.reports.size(); ++i) {
    if (observations.reports[i].stuck.empty()) continue;
    rows.push_back(failed(
        "leftovers", observations.ranks[i].subject,
        fmt::format("its probe survived SIGKILL ({}): it may still hold its GPU",
                    observations.reports[i].stuck),
        "no probe is left",
        {"a driver call does not return: dmesg says more; the node may need a restart", Responsible::admin}));
    rows.back().hosts = observations.hosts_of({i});
  }
  return rows;
}

}  // namespace nlaunch::preflight
