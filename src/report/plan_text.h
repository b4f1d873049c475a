#pragma once
#include <string>

#include "plan/plan.h"
#include "report/table.h"

namespace nlaunch::report {

/// What would run where, for people: roles, nodes with their GPUs, groups, idle GPUs. Shows at most
/// `most_nodes` nodes one by one.
std::string plan_text(const plan::Plan& plan, const Paint& paint, std::uint32_t most_nodes);

/// "1 × learner on GPU 0 · 3 × engine on GPU 1-3": one line for the start of a run.
std::string placement_line(const plan::Plan& plan);

/// "0-3,7" for sorted numbers.
std::string ranges(const std::vector<std::uint32_t>& numbers);

}  // namespace nlaunch::report
