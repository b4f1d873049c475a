#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

/// A Slurm node, from the node itself.
namespace nlaunch::launch {

/// Slurm's name for this machine: SLURMD_NODENAME, which slurmd sets for what it starts, or else the host
/// name up to its first dot.
std::string slurm_node_name(const std::vector<std::string>& environment);

/// Whether a node accepts no new jobs, from the line of `scontrol -o show node`.
bool is_drained(std::string_view line);

/// Drains a node: running jobs continue. False if it was already drained, whose reason then stays. Each of
/// the two Slurm commands times out after half of `patience`.
Result<bool> drain_node(const std::string& node, const std::string& reason,
                        const std::vector<std::string>& environment, Duration patience);

}  // namespace nlaunch::launch
