#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Rejects `tolerate` for roles that a run cannot do without, and warns about a weight sync whose group
/// breaks with a replica.
void check_tolerance(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// Rejects `standby` for roles that nothing addresses, and for more replicas than possible.
void check_standby(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics);

/// Whether the run continues after the loss of some of its nodes.
bool outlives_nodes(const Plan& plan);
/// For each node, whether the run continues without it, as far as only tolerant roles use it. The first node
/// runs nlaunch itself.
std::vector<bool> dispensable_nodes(const Plan& plan);
/// Whether its agents keep their processes for `leader_grace` after nlaunch has exited, and wait for another
/// one.
bool outlives_leader(const Plan& plan);

}  // namespace nlaunch::plan
