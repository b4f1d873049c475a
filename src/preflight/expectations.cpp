#include "preflight/expectations.h"

#include <algorithm>
#include <map>

namespace nlaunch::preflight {

bool fits(const plan::Expectation& expectation, const Evidence& evidence, const GroupTrial& group) {
  if (group.backend != Backend::nccl || group.kind == plan::GroupKind::weight_sync) return false;
  std::map<std::uint32_t, std::uint32_t> on_node;
  for (const auto rank : group.members) ++on_node[evidence.ranks[rank].node];
  const auto nodes = static_cast<std::uint32_t>(on_node.size());
  if (expectation.nodes && !expectation.nodes->contains(Version{{nodes}})) return false;
  return !expectation.gpus_per_node || std::ranges::all_of(on_node, [&](const auto& entry) {
    return entry.second == *expectation.gpus_per_node;
  });
}

}  // namespace nlaunch::preflight
