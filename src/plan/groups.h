#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace nlaunch::plan {

/// The communicators of a run, from its placed processes: the learners' world, each engine's tensor-parallel
/// group of more than one GPU, the weight-sync group, and each node's GPUs together. Groups of fewer than two
/// members are left out: nothing is communicated there.
std::vector<Group> make_groups(const Plan& plan);

/// Whether processes of two roles may be on one GPU at once: one shares the other's, or both a third's.
bool share_gpus(const Role& a, const Role& b);

/// Whether weights are sent to the engines of this role over the network: an engine on GPUs of the first
/// learner role gets them there (CUDA IPC), and of engines on the same GPUs one is in the group, the first.
bool is_in_weight_sync(const Plan& plan, std::size_t role);

/// The process of that name, "engine.0"; of a replica its leader, of a role, "engine", its first; nullptr
/// where there is none.
const Process* find_process(const Plan& plan, std::string_view name);

/// Whom an entry of WeightSync::order stands for: "learner.0", "engine".
std::vector<Member> sync_members(const Plan& plan, std::string_view entry);
/// A weight-sync group in rank order, which knows its size; empty where there is none.
std::vector<Member> sync_members(const Plan& plan, const WeightSync& sync);

/// How many ranks a weight-sync group has; 0 where there is none.
std::uint32_t weight_sync_size(const Plan& plan, const WeightSync& sync);

/// The rank of a process's first GPU in a weight-sync group; -1 for who is not in it.
std::int64_t sync_rank(const Plan& plan, const WeightSync& sync, const Process& process);

/// The node where a weight-sync group meets: that of its master. Without a group, that of the first learner.
std::uint32_t sync_node(const Plan& plan, const WeightSync& sync);

/// "weight sync", or with its name.
std::string group_name(const WeightSync& sync);

}  // namespace nlaunch::plan
