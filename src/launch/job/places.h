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

/// Where the nodes of an allocation stand: what only they know, asked of them before the run's own step.
namespace nlaunch::launch {

struct Place {
  std::string domain;     ///< of NVLink: nodes that share it reach each other's GPUs; empty: unknown, or none
  std::string at_switch;  ///< "spine0.leaf3": the names from the top down; empty: unknown
};

/// By name of the node.
using Places = std::map<std::string, Place>;

/// What the nodes said.
struct Answered {
  Places places;
  std::string trouble{};  ///< what srun said where some did not answer; empty: all did
};

/// Of this machine: the NVLink domain as NVML has it, or else Slurm's block, and the switch as Slurm has it
/// (SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN of a task, srun(1)).
Place place_of(const std::vector<std::string>& environment, const Machine& machine);

/// The line by which a node tells where it stands.
std::string place_line(const std::string& node, const Place& place);
/// Those of all nodes, from what their tasks wrote: other lines are left out.
Places parse_places(std::string_view output);

/// Whether the order of the nodes depends on where they stand, and somebody may know it: a role is kept
/// together, or the profile or Slurm (by `environment`) knows of more than one place.
bool needs_places(const plan::Plan& plan, const std::vector<std::string>& environment);

/// Asks all nodes of the allocation but those that are `out`, in a step of their own; where that cannot
/// start, as with a spare that is down, those that the plan would have without it.
Result<Answered> ask_places(const plan::Plan& plan, const Allocation& allocation,
                            const std::set<std::string>& out, const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
