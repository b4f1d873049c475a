#pragma once
#include <expected>
#include <set>
#include <string>
#include <vector>

#include "launch/job/allocation.h"
#include "launch/job/places.h"
#include "plan/plan.h"

/// Maps the nodes of an allocation to the nodes of the plan: a pure function of their locations.
namespace nlaunch::launch {

/// The names of the nodes by their index in the plan, without excluded ones. Nodes with keep_together are
/// placed together, replicas over several nodes too if there is room, and all others follow in order of
/// location; nodes with unknown location keep the allocation's order. The failure is a sentence: too few
/// nodes are left, or something cannot be kept together.
std::expected<std::vector<std::string>, std::string> choose_nodes(const plan::Plan& plan,
                                                                  const Allocation& allocation,
                                                                  const std::set<std::string>& out,
                                                                  const Places& places = {});

/// The nodes of the allocation on which node `node` of the plan can be in place of `host`, including `host`:
/// of the same component, not in `out`, and, if others must be close to it, as close as `host`.
std::vector<std::string> hosts_for(const plan::Plan& plan, const Allocation& allocation,
                                   const std::set<std::string>& out, const Places& places, std::uint32_t node,
                                   const std::string& host);

}  // namespace nlaunch::launch
