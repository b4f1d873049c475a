#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "plan/plan.h"

/// Which nodes of a plan must be close to each other: in one NVLink domain, on one switch.
namespace nlaunch::plan {

/// Some processes of one role, on several nodes.
struct Together {
  std::string name;  ///< "engine.2", "learner", "learner (nodes 16-31)"
  Closeness within = Closeness::domain;
  std::vector<std::uint32_t> nodes;  ///< of the plan, ascending
  std::string origin;                ///< location of the setting; empty: not requested, only preferable
};

/// What the roles request, in order, followed by replicas on several nodes without a setting.
std::vector<Together> kept_together(const Plan& plan);

/// Rejects what is impossible: more nodes than the profile's domains or switches have, or a switch under a
/// scheduler that does not report the location of its nodes.
void check_together(const Plan& plan, const config::Experiment& experiment, Diagnostics& diagnostics);

/// Requests such nodes from Slurm: `segment` if it knows blocks, `switches` if it knows switches. Existing
/// directives are kept.
void ask_for_places(Plan& plan);

/// "NVLink domain", "switch", "node"
std::string_view title_of(Closeness within);

}  // namespace nlaunch::plan
