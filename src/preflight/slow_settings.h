#pragma once
#include <string>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The variables of a process's environment that take a transport or a protocol away: "NCCL_P2P_DISABLE=1".
std::vector<std::string> slow_settings(const plan::BoundProcess& process);

/// The variables that take a transport or a protocol away, as set in the environments of a group's ranks:
/// "NCCL_P2P_DISABLE=1 is set for learner". Empty where there is none.
std::string slow_settings(const Observations& observations, const GroupTrial& group);

}  // namespace nlaunch::preflight
