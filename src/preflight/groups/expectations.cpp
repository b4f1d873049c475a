#include "preflight/groups/expectations.h"

#include <algorithm>
#include <map>

#include "base/backend.h"

namespace nlaunch::preflight {

bool fits(const plan::Expectation& expectation, const Observations& observations, const GroupTrial& group) {
  if (!traits_of(group.backend).steady_times || group.op() != Collective::all_reduce) return false;
  std::map<std::uint32_t, std::uint32_t> on_node;
  for (const auto rank : group.members) ++on_node[observations.ranks[rank].node];
  const auto nodes = static_cast<std::uint32_t>(on_node.size());
  if (expectation.nodes && !expectation.nodes->contains(Version{{nodes}})) return false;
  return !expectation.gpus_per_node || std::ranges::all_of(on_node, [&](const auto& entry) {
    return entry.second == *expectation.gpus_per_node;
  });
}

std::uint64_t tried_size(const plan::Expectation& expectation) {
  constexpr std::uint64_t kElement = 4;  // bytes
  return expectation.size / kElement * kElement;
}

void set_expectations(const Observations& observations, std::vector<Measurement>& measurements) {
  for (auto& one : measurements) {
    const auto group = std::ranges::find(observations.groups, one.group, &GroupTrial::name);
    if (group == observations.groups.end()) continue;
    one.kind = name_of(group->kind);
    for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
      if (one.op != "all_reduce" || !fits(expectation, observations, *group)) continue;
      one.limit = std::max(one.limit, expectation.limit);
      if (expectation.size == one.bytes) one.floor = std::max(one.floor, expectation.min);
    }
  }
}

}  // namespace nlaunch::preflight
