#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

/// Pools whose nodes are borrowed: each is a job of its own, which comes late and may be taken away.
namespace nlaunch::plan {

/// Refuses elastic pools where nobody lends nodes, and where the run's own job would have none.
void check_pools(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

/// Refuses to place on borrowed nodes what a run cannot do without, or what has to know the others when it
/// starts. The processes of `plan` are placed, and the sizes of its weight syncs known.
void check_elastic(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

/// Of a borrowed pool's nodes, by their order: the processes that are there. Only those that a run starts.
std::vector<std::vector<std::uint32_t>> processes_by_node(const Plan& plan, const Pool& pool);

}  // namespace nlaunch::plan
