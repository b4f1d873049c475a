#pragma once
#include <string>

#include "plan/plan.h"
#include "report/table.h"

namespace nlaunch::report {

/// What would run where, for a person: roles, nodes with their GPUs, groups, what is idle.
/// At most `most_nodes` nodes are shown one by one.
std::string plan_text(const plan::Plan& plan, const Paint& paint, std::uint32_t most_nodes);

/// "learner 0 on GPU 0 · engine 0-2 on GPU 1-3", one line for a run that starts.
std::string placement_line(const plan::Plan& plan);

/// "0-3,7" for sorted numbers.
std::string ranges(const std::vector<std::uint32_t>& numbers);

}  // namespace nlaunch::report
