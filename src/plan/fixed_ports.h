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

/// A port by number on which a process of the role listens.
struct FixedPortOf {
  std::uint16_t number = 0;
  bool sure = false;  ///< an engine's; what another program is told may be a port that it connects to
};
/// By the readiness check, and by `--port N` in the command. None of a learner, whose may be another role's,
/// and none of a role in a container: it may have a network of its own.
std::vector<FixedPortOf> fixed_ports_of(const Role& role);

}  // namespace nlaunch::plan
