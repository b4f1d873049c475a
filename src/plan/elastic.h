#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

/// Pools with borrowed nodes: each node is a separate job, which can start late and can be preempted.
namespace nlaunch::plan {

/// Rejects elastic pools if the scheduler does not lend nodes, and if the run's own job would have no nodes.
void check_pools(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

/// Rejects roles on borrowed nodes that the run cannot do without, or that must know all other processes when
/// they start. The processes of `plan` must be placed, and the sizes of its weight syncs known.
void check_elastic(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

/// For each node of a borrowed pool, in order: the processes on it. Only those that nlaunch starts.
std::vector<std::vector<std::uint32_t>> processes_by_node(const Plan& plan, const Pool& pool);

}  // namespace nlaunch::plan
