#pragma once
#include "plan/plan.h"

namespace nlaunch::plan {

/// The communicators of a run, from its placed processes: the learners' world, each engine's tensor-parallel
/// group of more than one GPU, the weight-sync group, and each node's GPUs together. Groups of fewer than two
/// members are left out: nothing is communicated there.
std::vector<Group> make_groups(const Plan& plan);

/// 1 + all engine GPUs, or 0 without a learner or without engines that have GPUs.
std::uint32_t weight_sync_size(const Plan& plan);

/// The rank of a process's first GPU in the weight-sync group: 0 for learner rank 0, -1 for who is not in it.
std::int64_t sync_rank(const Plan& plan, const Process& process);

/// The node where the weight-sync group meets: that of its learner. 0 without a group.
std::uint32_t sync_node(const Plan& plan);

}  // namespace nlaunch::plan
