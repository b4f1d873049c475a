#pragma once
#include "plan/plan.h"

namespace nlaunch::plan {

/// The communicators of a run, from its placed processes: the learners' world, each engine's tensor-parallel
/// group of more than one GPU, the weight-sync group, and each node's GPUs together. Groups of fewer than two
/// members are left out: nothing is communicated there.
std::vector<Group> make_groups(const Plan& plan);

/// Whether processes of two roles may be on one GPU at once: one shares the other's, or both a third's.
bool share_gpus(const Role& a, const Role& b);

/// Whether weights are sent to the engines of this role over the network: an engine on a learner's GPUs gets
/// them there (CUDA IPC), and of engines on the same GPUs one is in the group, the first.
bool is_in_weight_sync(const Plan& plan, std::size_t role);

/// 1 + the GPUs of all engines that are in it, or 0 without a learner or without such engines.
std::uint32_t weight_sync_size(const Plan& plan);

/// The rank of a process's first GPU in the weight-sync group: 0 for learner rank 0, -1 for who is not in it.
std::int64_t sync_rank(const Plan& plan, const Process& process);

/// The node where the weight-sync group meets: that of its learner. 0 without a group.
std::uint32_t sync_node(const Plan& plan);

}  // namespace nlaunch::plan
