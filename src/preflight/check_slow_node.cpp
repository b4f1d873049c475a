#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/backend.h"
#include "preflight/checks.h"
#include "preflight/group_outcome.h"

namespace nlaunch::preflight {
namespace {

/// Three are the fewest of which one can differ from most.
constexpr std::size_t kFewest = 3;
constexpr double kSlower = 1.5;
/// Below this a time is latency, and says little of a link.
constexpr std::uint64_t kLeast = 16U << 20U;

/// The largest message of a node's group.
struct NodeTime {
  const GroupTrial* group = nullptr;
  double seconds = 0;
  double busbw = 0;
};
/// All nodes with as many ranks in the group, at one size.
using Peers = std::map<std::pair<std::size_t, std::uint64_t>, std::vector<NodeTime>>;

Peers peers_in(const Observations& observations) {
  Peers peers;
  for (const auto& group : observations.groups) {
    const bool comparable = group.kind == plan::GroupKind::node && traits_of(group.backend).steady_times &&
                            group.not_run.empty() && complete(observations, group);
    if (!comparable || group.neighbours || group.sizes.empty() || group.sizes.back() < kLeast) continue;
    const auto last = measured(observations, group).back();
    peers[{group.members.size(), last.bytes}].push_back({&group, last.seconds, last.busbw});
  }
  return peers;
}

}  // namespace

/// All nodes run the same group at the same time: who takes much longer than most is slower than they are,
/// whatever the site expects. Over Gloo times are those of processors that do other things as well.
std::vector<Row> check_slow_node(const Observations& observations) {
  std::vector<Row> rows;
  if (!observations.went) return rows;
  for (auto& [key, times] : peers_in(observations)) {
    if (times.size() < kFewest) continue;
    auto sorted = times;
    std::ranges::sort(sorted, {}, &NodeTime::seconds);
    const auto& median = sorted[(sorted.size() - 1) / 2];
    const auto size = message_text(key.second);
    std::size_t slow = 0;
    for (const auto& one : times) {
      if (one.seconds <= kSlower * median.seconds) continue;
      ++slow;
      rows.push_back(failed("slow-node", one.group->name,
                            fmt::format("{} at {}, the median of {} nodes is {}", format_rate(one.busbw),
                                        size, times.size(), format_rate(median.busbw)),
                            "as fast as the other nodes",
                            {"a GPU or a link of this node is slower than those of the others: nvidia-smi "
                             "nvlink -s, nvidia-smi -q -d PERFORMANCE; report the node",
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

}  // namespace nlaunch::preflight
