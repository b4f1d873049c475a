#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/backend.h"
#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/groups/expectations.h"
#include "preflight/groups/group_outcome.h"

namespace nlaunch::preflight {
namespace {

Row judge(const Observations& observations, const GroupTrial& group, const Measurement& one,
          const plan::Expectation& expectation) {
  const auto value =
      fmt::format("{} at {} ({})", format_rate(one.busbw), message_text(one.bytes), time_text(one.seconds));
  const auto expected = fmt::format("at least {} ({})", format_rate(expectation.min), expectation.origin);
  if (one.busbw >= expectation.min) return passed("bandwidth", group.name, value, expected);
  const auto settings = slow_settings(observations, group);
  if (!settings.empty()) {
    return failed(
        "bandwidth", group.name, value, expected,
        {fmt::format("{}: run without it (nlaunch env --explain shows where it is set)", settings)});
  }
  return failed("bandwidth", group.name, value, expected,
                {"links or GPUs are slower than the site expects: check nvidia-smi topo -m and nvidia-smi "
                 "nvlink -s; report the node",
                 Responsible::admin});
}

std::vector<Row> check_bandwidth(const Observations& observations) {
  std::map<std::pair<std::string, std::uint64_t>, Measurement> measured;
  for (auto& one : measurements(observations)) measured[{one.group, one.bytes}] = one;
  std::vector<Row> rows;
  for (const auto& group : observations.groups) {
    for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
      if (!group.not_run.empty() || !fits(expectation, observations, group)) continue;
      if (tried_size(expectation) == 0) {
        rows.push_back(unknown("bandwidth", group.name,
                               fmt::format("a message of {} does not hold one element of 4 B ({})",
                                           format_size(expectation.size), expectation.origin)));
      }
      const auto one = measured.find({group.name, tried_size(expectation)});
      if (one == measured.end()) continue;
      rows.push_back(judge(observations, group, one->second, expectation));
      if (rows.back().status == Status::fail) rows.back().hosts = observations.host_of(group);
    }
  }
  return rows;
}

const Registered<Check> bandwidth_check{{
    .order = 60,
    .name = "bandwidth",
    .what = "the all-reduce of each group reaches the bandwidth that the site expects",
    .stage = Stage::after,
    .judge = check_bandwidth,
}};

/// The smallest number of which one can differ from most.
constexpr std::size_t kFewestNodes = 3;
constexpr double kSlowerNode = 1.5;
/// Below this a time is latency, and says little about a link.
constexpr std::uint64_t kLeastBytes = 16U << 20U;

/// The largest message of a node's group.
struct NodeTime {
  const GroupTrial* group = nullptr;
  double seconds = 0;
  double busbw = 0;
};
/// All nodes with the same number of ranks in the group, at one size.
using NodePeers = std::map<std::pair<std::size_t, std::uint64_t>, std::vector<NodeTime>>;

NodePeers node_peers(const Observations& observations) {
  NodePeers peers;
  for (const auto& group : observations.groups) {
    const bool comparable = group.kind == plan::GroupKind::node && traits_of(group.backend).steady_times &&
                            group.not_run.empty() && complete(observations, group);
    if (!comparable || group.neighbours || group.sizes.empty() || group.sizes.back() < kLeastBytes) continue;
    const auto last = measured(observations, group).back();
    peers[{group.members.size(), last.bytes}].push_back({&group, last.seconds, last.busbw});
  }
  return peers;
}

/// All nodes run the same group at the same time: a node that takes much longer than most is slower than they
/// are, whatever the site expects. Over Gloo, times depend on processors that also do other work.
std::vector<Row> check_slow_node(const Observations& observations) {
  std::vector<Row> rows;
  if (!observations.went) return rows;
  for (auto& [key, times] : node_peers(observations)) {
    if (times.size() < kFewestNodes) continue;
    auto sorted = times;
    std::ranges::sort(sorted, {}, &NodeTime::seconds);
    const auto& median = sorted[(sorted.size() - 1) / 2];
    const auto size = message_text(key.second);
    std::size_t slow = 0;
    for (const auto& one : times) {
      if (one.seconds <= kSlowerNode * median.seconds) continue;
      ++slow;
      rows.push_back(failed("slow-node", one.group->name,
                            fmt::format("{} at {}, the median of {} nodes is {}", format_rate(one.busbw),
                                        size, times.size(), format_rate(median.busbw)),
                            "as fast as the other nodes",
                            {"a GPU or link of this node is slower than those of the other nodes: check "
                             "nvidia-smi nvlink -s and nvidia-smi -q -d PERFORMANCE; report the node",
                             Responsible::admin}));
      rows.back().hosts = observations.host_of(*one.group);
    }
    if (slow == 0) {
      rows.push_back(passed("slow-node", fmt::format("{} nodes", times.size()),
                            fmt::format("{} to {} at {}", format_rate(sorted.back().busbw),
                                        format_rate(sorted.front().busbw), size)));
    }
  }
  return rows;
}

const Registered<Check> slow_node_check{{
    .order = 70,
    .name = "slow-node",
    .what = "no node's group takes much longer than on most nodes",
    .stage = Stage::after,
    .judge = check_slow_node,
}};

/// The transports between the ranks of a group: "P2P", or "P2P and SHM" if pairs differ.
struct ChosenTransport {
  std::set<std::string> within_node;
  std::set<std::string> between_nodes;
  std::string network;
  std::string error;
};

ChosenTransport chosen_transport(const Observations& observations, const GroupTrial& group) {
  ChosenTransport chosen;
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

std::string listed_settings(const std::set<std::string>& names) {
  return text::join(std::vector<std::string>(names.begin(), names.end()), " and ");
}

Row judge(const Observations& observations, const GroupTrial& group, const char* where,
          const std::set<std::string>& via, const std::string& expected) {
  const auto value = fmt::format("{} {}", listed_settings(via), where);
  if (expected.empty() || (via.size() == 1 && *via.begin() == expected)) {
    return passed("transport", group.name, value, expected);
  }
  const auto settings = slow_settings(observations, group);
  if (!settings.empty()) {
    return failed(
        "transport", group.name, value, expected,
        {fmt::format("{}: run without it (nlaunch env --explain shows where it is set)", settings)});
  }
  const bool network = expected.starts_with("NET");
  return failed("transport", group.name, value, expected,
                network ? Remedy{"NCCL did not find its network plugin: check that its directory is in "
                                 "LD_LIBRARY_PATH and that NCCL_NET is set"}
                        : Remedy{"the GPUs cannot reach each other directly: check nvidia-smi topo -p2p r; a "
                                 "container without peer access, PCIe ACS or an IOMMU causes this",
                                 Responsible::admin});
}

std::vector<Row> check_transport(const Observations& observations) {
  std::vector<Row> rows;
  if (!observations.went) return rows;
  for (const auto& group : observations.groups) {
    if (!group.transport || !group.not_run.empty()) continue;
    const auto chosen = chosen_transport(observations, group);
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
      rows.push_back(
          unknown("transport", group.name, chosen.error.empty() ? "NCCL's log names none" : chosen.error));
    }
  }
  return rows;
}

const Registered<Check> transport_check{{
    .order = 80,
    .name = "transport",
    .what = "each group uses the transport that the site expects, and does not silently fall back to TCP",
    .stage = Stage::after,
    .judge = check_transport,
}};

std::vector<Row> check_leftovers(const Observations& observations) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < observations.reports.size(); ++i) {
    if (observations.reports[i].stuck.empty()) continue;
    rows.push_back(
        failed("leftovers", observations.ranks[i].subject,
               fmt::format("its probe survived SIGKILL ({}): it may still hold its GPU",
                           observations.reports[i].stuck),
               "no probe left running",
               {"a driver call does not return: see dmesg; the node may need a reboot", Responsible::admin}));
    rows.back().hosts = observations.hosts_of({i});
  }
  return rows;
}

const Registered<Check> leftovers_check{{
    .order = 90,
    .name = "leftovers",
    .what = "no probe is left stuck in a driver call, where it may hold a GPU",
    .stage = Stage::after,
    .judge = check_leftovers,
}};

}  // namespace
}  // namespace nlaunch::preflight
