#include "plan/weight_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/groups.h"

namespace nlaunch::plan {
namespace {

using Gpu = std::pair<std::uint32_t, std::uint16_t>;  ///< of a node

/// The process for each GPU of a group; using a GPU twice is an error.
std::map<Gpu, std::string> check_members(const config::WeightSync& sync, const Plan& plan,
                                         Diagnostics& diagnostics) {
  std::map<Gpu, std::string> seen;
  for (const auto& name : sync.order) {
    const auto members = sync_members(plan, name.value);
    if (members.empty()) {
      diagnostics
          .error("plan.weight-sync", name.span, fmt::format("'{}' has no GPU for the group", name.value))
          .hint = "name roles that have `gpus`; 'learner.0' is the first process of the role 'learner'";
    }
    for (const auto& member : members) {
      const auto& process = plan.processes[member.process];
      const auto [first, is_new] = seen.try_emplace({process.node, member.gpu}, plan.name_of(process));
      if (is_new) continue;
      diagnostics
          .error("plan.weight-sync", name.span,
                 fmt::format("GPU {} of node {} would be in the group twice: {} and {}", member.gpu,
                             process.node, first->second, plan.name_of(process)))
          .hint = "a communicator can use a GPU only once: remove one of them";
      break;
    }
  }
  return seen;
}

void check_group(const config::WeightSync& sync, const WeightSync& made, const Plan& plan,
                 Diagnostics& diagnostics) {
  Diagnostics found;
  const auto seen = check_members(sync, plan, found);
  if (!found.has_errors() && !sync.order.empty() && seen.size() == 1) {
    found
        .error("plan.weight-sync", sync.order.front().span,
               fmt::format("only {} is in the group", seen.begin()->second))
        .hint = "name the processes that send weights and those that receive them: [learner.0, engine]";
  }
  if (sync.master && !found.has_errors()) {
    const auto* process = find_process(plan, sync.master->value);
    const auto members = sync_members(plan, made);
    const bool is_member = std::ranges::any_of(
        members, [&](const Member& member) { return &plan.processes[member.process] == process; });
    if (!is_member)
      found
          .error("plan.weight-sync", sync.master->span,
                 process == nullptr ? fmt::format("unknown process '{}'", sync.master->value)
                                    : fmt::format("'{}' is not in the group, so it cannot be its master",
                                                  sync.master->value))
          .hint = "write a process of the group: engine.0";
  }
  diagnostics.append(found);
}

/// CUDA IPC reaches only another process on the same GPU.
void check_ipc(const config::WeightSync& sync, const Plan& plan, Diagnostics& diagnostics) {
  std::set<Gpu> of_learners;
  for (const auto& process : plan.processes) {
    if (plan.role_of(process).kind != RoleKind::learner) continue;
    for (const auto gpu : process.gpus) of_learners.emplace(process.node, gpu);
  }
  for (const auto& process : plan.processes) {
    const auto& role = plan.role_of(process);
    if (role.kind != RoleKind::engine) continue;
    const auto apart = std::ranges::find_if(process.gpus, [&](std::uint16_t gpu) {
      return !of_learners.contains({process.node, gpu});
    });
    if (apart == process.gpus.end()) continue;
    diagnostics
        .error("plan.weight-sync", sync.backend.span,
               fmt::format(
                   "ipc passes weights within one GPU, but no learner is on GPU {} of node {}, which {} uses",
                   *apart, process.node, plan.name_of(process)))
        .hint =
        fmt::format("write `share_gpus_with: LEARNER` for the role '{}', or backend: nccl", role.name);
    return;
  }
}

}  // namespace

Backend backend_of(const config::Experiment& experiment, bool gpus) {
  for (const auto& sync : experiment.weight_syncs) {
    if (const auto backend = communicator_of(sync.backend.value)) return *backend;
  }
  return experiment.cpu_slots && !gpus ? Backend::gloo : Backend::nccl;
}

void check_weight_syncs(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < plan.weight_syncs.size(); ++i) {
    const auto& sync = experiment.weight_syncs[i];
    const auto& made = plan.weight_syncs[i];
    if (made.backend == SyncBackend::ipc)
      check_ipc(sync, plan, diagnostics);
    else
      check_group(sync, made, plan, diagnostics);
  }
}

}  // namespace nlaunch::plan
