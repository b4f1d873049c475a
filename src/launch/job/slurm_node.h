#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

/// A node of Slurm, from the node itself.
namespace nlaunch::launch {

/// The name by which Slurm knows this machine: SLURMD_NODENAME, which slurmd gives to what it starts, or else
/// the host's name up to its first dot.
std::string slurm_node_name(const std::vector<std::string>& environment);

/// Whether a node takes no new jobs, by the line of `scontrol -o show node`.
bool is_drained(std::string_view line);

/// Takes a node out of service: what runs there goes on. False where somebody has done so before, whose
/// reason then stays. Each of the two questions to Slurm is given up after half of `patience`.
Result<bool> drain_node(const std::string& node, const std::string& reason,
                        const std::vector<std::string>& environment, Duration patience);

}  // namespace nlaunch::launch
