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

}  // namespace nlaunch::launch
