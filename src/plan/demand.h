#pragma once
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/placement.h"
#include "plan/plan.h"

/// Between an experiment's roles and their placement.
namespace nlaunch::plan {

/// What each role asks for, in file order.
std::vector<Demand> demands_of(const config::Experiment& experiment);

/// Says which processes together are to use more than all of a GPU's memory: once for the roles that are on
/// it.
void check_gpu_memory(const std::vector<Demand>& wanted, const Placement& placement,
                      const config::Experiment& experiment, Diagnostics& diagnostics);

/// Says at the role's place in the file what does not fit, what would, and who takes the rest. Of the plan,
/// the node is known.
void report_misfit(const Misfit& misfit, const std::vector<Demand>& wanted,
                   const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

}  // namespace nlaunch::plan
