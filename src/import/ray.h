#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// Ready once the cluster has this many GPUs.
ImportedReady ray_is_whole(std::uint32_t gpus, const std::string& python);

/// The processes that a trainer under Ray starts, from the options that set how many; without them, all GPUs
/// belong to learners. Does not set `spawned_by`.
std::vector<ImportedRole> ray_actors(const shell::Words& trainer, const shell::Allocation& allocation);

/// The processes that a server under Ray starts: they use all GPUs.
std::vector<ImportedRole> ray_engines(const shell::Allocation& allocation);

}  // namespace nlaunch::import
