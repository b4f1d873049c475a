#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Refuses `tolerate` of what a run cannot do without, and warns of a weight sync whose group breaks with a
/// replica.
void check_tolerance(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// Refuses `standby` of what nobody addresses, and of more than could stand by.
void check_standby(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// The run goes on where some of its nodes are lost.
bool outlives_nodes(const Plan& plan);
/// Of each node whether the run goes on without it, as far as that is one of a role that tolerates it. The
/// first node has nlaunch itself.
std::vector<bool> dispensable_nodes(const Plan& plan);
/// Its agents keep what they have for `leader_grace` when nlaunch has ended, and find another one.
bool outlives_leader(const Plan& plan);

}  // namespace nlaunch::plan
