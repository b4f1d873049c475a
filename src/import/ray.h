#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// Ready once the cluster has this many GPUs or, if it counts none, this many nodes.
ImportedReady ray_is_whole(std::size_t nodes, std::size_t gpus, const std::string& python);

/// `ray start`, also in the text of `bash -c`, with --block: it stays in the foreground.
shell::Words with_block(shell::Words command);

/// The processes that a trainer under Ray starts, from the options that set how many; without them, all GPUs
/// belong to learners. Does not set `spawned_by`.
std::vector<ImportedRole> ray_actors(const shell::Words& trainer, const shell::Allocation& allocation);

/// The processes that a server under Ray starts: they use all GPUs.
std::vector<ImportedRole> ray_engines(const shell::Allocation& allocation);

}  // namespace nlaunch::import
