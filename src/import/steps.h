#pragma once
#include <cstdint>

#include "import/commands.h"
#include "import/roles.h"

/// How much of the job a program has: all of it, or what the options of its srun say.
namespace nlaunch::import {

/// On how many nodes it runs.
std::uint32_t nodes_of(const Launch& launch, const JobSize& job);
/// How many of it a node has.
std::uint32_t tasks_of(const Launch& launch, const JobSize& job);
/// A step with a task on each node of a job that has several.
bool on_every_node(const Launch& launch, const JobSize& job);

}  // namespace nlaunch::import
