#pragma once
#include <expected>
#include <set>
#include <string>
#include <vector>

#include "launch/job/allocation.h"
#include "launch/job/places.h"
#include "plan/plan.h"

/// Which node of an allocation is which of the plan: a pure function of where they stand.
namespace nlaunch::launch {

/// The names of the nodes by their index in the plan, without those that are left out. What is kept together
/// stands together, replicas of several nodes do where there is room, and all others follow each other as
/// they stand; nodes of which nothing is known keep the allocation's order. The failure is a sentence: too
/// few nodes are left, or something cannot be kept together.
std::expected<std::vector<std::string>, std::string> choose_nodes(const plan::Plan& plan,
                                                                  const Allocation& allocation,
                                                                  const std::set<std::string>& out,
                                                                  const Places& places = {});

/// The nodes of the allocation on which node `node` of the plan may be in place of `host`, this one among
/// them: of the same component and not `out`, and where others must be close to it, as close as it is.
std::vector<std::string> hosts_for(const plan::Plan& plan, const Allocation& allocation,
                                   const std::set<std::string>& out, const Places& places, std::uint32_t node,
                                   const std::string& host);

}  // namespace nlaunch::launch
