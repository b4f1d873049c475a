#pragma once
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/placement.h"
#include "plan/plan.h"

/// Between an experiment's roles and their placement.
namespace nlaunch::plan {

/// What each role requests, in file order.
std::vector<Demand> demands_of(const config::Experiment& experiment);

/// Reports processes that together would use more than the whole memory of a GPU: once per set of roles on
/// it.
void check_gpu_memory(const std::vector<Demand>& wanted, const Placement& placement,
                      const config::Experiment& experiment, Diagnostics& diagnostics);

/// Reports, at the role's location in the file, what does not fit, what would fit, and which roles use the
/// rest. Only the nodes of the plan are known at this point.
void report_misfit(const Misfit& misfit, const std::vector<Demand>& wanted,
                   const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

}  // namespace nlaunch::plan
