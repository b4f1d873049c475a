#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace nlaunch::plan {

/// The communicators of a run, from its placed processes: the learners' world, each engine's tensor-parallel
/// group of more than one GPU, the weight-sync group, and the GPUs of each node. Groups with fewer than two
/// members are left out, because nothing is communicated in them.
std::vector<Group> make_groups(const Plan& plan);

/// Whether processes of two roles can use one GPU at the same time: one shares the other's GPUs, or both
/// share a third's.
bool share_gpus(const Role& a, const Role& b);

/// Whether weights are sent to the engines of this role over the network: an engine on GPUs of the first
/// learner role gets them there (CUDA IPC), and of several engines on the same GPUs only the first is in the
/// group.
bool is_in_weight_sync(const Plan& plan, std::size_t role);

/// The process with that name, "engine.0"; for a replica its leader, for a role, "engine", its first process;
/// nullptr if there is none.
const Process* find_process(const Plan& plan, std::string_view name);

/// The processes that an entry of WeightSync::order means: "learner.0", "engine".
std::vector<Member> sync_members(const Plan& plan, std::string_view entry);
/// The members of a weight-sync group in rank order; its size must be known; empty if there is no group.
std::vector<Member> sync_members(const Plan& plan, const WeightSync& sync);

/// The number of ranks in a weight-sync group; 0 if there is no group.
std::uint32_t weight_sync_size(const Plan& plan, const WeightSync& sync);

/// The rank of a process's first GPU in a weight-sync group; -1 for a process that is not in it.
std::int64_t sync_rank(const Plan& plan, const WeightSync& sync, const Process& process);

/// The node of a weight-sync group's rendezvous: that of its master. Without a group, the node of the first
/// learner.
std::uint32_t sync_node(const Plan& plan, const WeightSync& sync);

/// "weight sync", or "weight sync NAME".
std::string group_name(const WeightSync& sync);

}  // namespace nlaunch::plan
