#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// Ready once the cluster has so many GPUs.
ImportedReady ray_is_whole(std::uint32_t gpus, const std::string& python);

/// The processes that a trainer under Ray starts, by the options that say how many; where none does, all GPUs
/// are learners'. `spawned_by` is left open.
std::vector<ImportedRole> ray_actors(const shell::Words& trainer, const shell::Allocation& allocation);

/// The processes that a server under Ray starts: all GPUs are theirs.
std::vector<ImportedRole> ray_engines(const shell::Allocation& allocation);

}  // namespace nlaunch::import
