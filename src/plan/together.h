#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "plan/plan.h"

/// Which nodes of a plan have to have a place in common: an NVLink domain, a switch.
namespace nlaunch::plan {

/// Some processes of one role, on several nodes.
struct Together {
  std::string name;  ///< "engine.2", "learner", "learner (nodes 16-31)"
  Closeness within = Closeness::domain;
  std::vector<std::uint32_t> nodes;  ///< of the plan, ascending
  std::string origin;                ///< where it was asked for; empty: nobody did, and it is but better so
};

/// What the roles ask for, in their order, and then the replicas of several nodes of which nobody said
/// anything.
std::vector<Together> kept_together(const Plan& plan);

/// Refuses what can be nowhere: more nodes than the profile's domains or switches have, or a switch under a
/// scheduler that does not say where its nodes are.
void check_together(const Plan& plan, const config::Experiment& experiment, Diagnostics& diagnostics);

/// Asks Slurm for nodes that stand so: `segment` where it knows blocks, `switches` where it knows switches.
/// What the directives say already stays.
void ask_for_places(Plan& plan);

/// "NVLink domain", "switch", "node"
std::string_view title_of(Closeness within);

}  // namespace nlaunch::plan
