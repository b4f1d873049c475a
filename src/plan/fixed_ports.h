#pragma once
#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Processes that share a node and have one port by its number: of their readiness check, which then asks one
/// process for the other (an error), or of `--port N` in the command of an engine or a service (a warning of
/// the plan). Roles of the plan and of the experiment stand in the same order, and the processes have been
/// placed.
void check_fixed_ports(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

}  // namespace nlaunch::plan
