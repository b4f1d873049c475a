#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "launch/job/allocation.h"
#include "launch/machine.h"
#include "plan/plan.h"

/// Where the nodes of an allocation are: only the nodes know, so they are asked before the run's own step.
namespace nlaunch::launch {

struct Place {
  std::string
      domain;  ///< NVLink domain: nodes that share it reach each other's GPUs; empty: unknown, or none
  std::string at_switch;  ///< "spine0.leaf3": switch names from the top down; empty: unknown
};

/// By name of the node.
using Places = std::map<std::string, Place>;

/// The answers of the nodes.
struct Answered {
  Places places;
  std::string trouble{};  ///< srun's output if some did not answer; empty: all did
};

/// The place of this machine: the NVLink domain from NVML, or else Slurm's block, and the switch from Slurm
/// (SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN of a task, srun(1)).
Place place_of(const std::vector<std::string>& environment, const Machine& machine);

/// The line with which a node reports its place.
std::string place_line(const std::string& node, const Place& place);
/// The places of all nodes from the output of their tasks: other lines are ignored.
Places parse_places(std::string_view output);

/// Whether the order of the nodes depends on their places, and these can be known: a role is kept together,
/// or the profile or Slurm (from `environment`) knows of more than one place.
bool needs_places(const plan::Plan& plan, const std::vector<std::string>& environment);

/// Asks all nodes of the allocation except those in `out`, in a separate step; if that cannot start, for
/// example because a spare node is down, only those that the plan would use without places.
Result<Answered> ask_places(const plan::Plan& plan, const Allocation& allocation,
                            const std::set<std::string>& out, const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
