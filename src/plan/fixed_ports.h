#pragma once
#include <cstdint>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Processes that share a node and have one port by its number: of their readiness check, which then asks one
/// process for the other (an error), or of `--port N` in the command of an engine or a service (a warning of
/// the plan). Roles of the plan and of the experiment stand in the same order, and the processes have been
/// placed.
void check_fixed_ports(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// The ports by number on which a process of the role listens: as its readiness check asks on them, or else
/// by
/// `--port N` in its command, which of a learner may be another role's.
std::vector<std::uint16_t> fixed_ports_of(const Role& role);

}  // namespace nlaunch::plan
