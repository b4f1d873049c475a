#pragma once
#include <cstdint>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Processes that share a node and use the same fixed port: in their readiness check, which would then check
/// one process instead of the other (an error), or in `--port N` in the command of an engine or a service (a
/// warning of the plan). The roles of the plan and of the experiment must be in the same order, and the
/// processes must be placed.
void check_fixed_ports(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// The numbers of `--port N` in a command.
std::vector<std::uint16_t> ports_in(const std::vector<std::string>& command);

/// A fixed port on which a process of the role listens.
struct FixedPortOf {
  std::uint16_t number = 0;
  bool sure =
      false;  ///< true for engines; in other commands, the port can be one that the program connects to
};
/// From the readiness check, and from `--port N` in the command. None for a learner, whose port can be
/// another role's, and none for a role in a container, which can have its own network.
std::vector<FixedPortOf> fixed_ports_of(const Role& role);

}  // namespace nlaunch::plan
