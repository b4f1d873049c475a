#include "plan/tolerance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scheduler_traits.h"
#include "base/text.h"

namespace nlaunch::plan {
namespace {

/// Whether the role is in the communicator of a weight sync, which fails for all ranks when one of them
/// exits.
bool is_in_group(const Plan& plan, const Role& role) {
  const bool learns =
      std::ranges::any_of(plan.roles, [](const Role& one) { return one.kind == RoleKind::learner; });
  return learns && role.kind == RoleKind::engine &&
         std::ranges::any_of(plan.weight_syncs, [](const WeightSync& sync) {
           return sync.backend == SyncBackend::nccl || sync.backend == SyncBackend::gloo;
         });
}

}  // namespace

bool outlives_nodes(const Plan& plan) {
  return plan.node.count > 1 &&
         std::ranges::any_of(plan.roles, [](const Role& role) { return role.tolerate.has_value(); });
}

std::vector<bool> dispensable_nodes(const Plan& plan) {
  std::vector<bool> out(plan.node.count, true);
  out.front() = false;
  for (const auto& process : plan.processes)
    if (!plan.role_of(process).tolerate && !plan.is_borrowed(process.node)) out[process.node] = false;
  return out;
}

bool outlives_leader(const Plan& plan) {
  const auto& traits = traits_of(plan.scheduler);
  return plan.leader_grace > Duration() && !traits.step.empty() && traits.shares_files;
}

void check_standby(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const auto& role = plan.roles[i];
    if (role.standby == 0) continue;
    const auto refuse = [&](std::string message, std::string hint) {
      diagnostics.error("plan.standby", experiment.roles[i].standby_span, std::move(message)).hint =
          std::move(hint);
    };
    if (role.ends_run || role.rendezvous != Rendezvous::none || !role.spawned_by.empty())
      refuse(fmt::format("role '{}' cannot have standbys", role.name),
             "standby is for engines and services whose processes are independent");
    else if (role.ports.empty())
      refuse(fmt::format(
                 "role '{}' has no ports: no other role gets the addresses of its processes, standby or not",
                 role.name),
             "write ports: [http]");
    else if (role.standby >= replicas(role))
      refuse(fmt::format("{} of role '{}' would be on standby, but there are {}: none would be used",
                         role.standby, role.name, replicas(role)),
             "count includes standbys: increase count, or reduce standby");
  }
}

void check_tolerance(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const auto& role = plan.roles[i];
    if (!role.tolerate) continue;
    const auto& span = experiment.roles[i].tolerate_span;
    const auto refuse = [&](std::string message, std::string hint) {
      diagnostics.error("plan.tolerate", span, std::move(message)).hint = std::move(hint);
    };
    if (role.ends_run)
      refuse(fmt::format("the run ends with role '{}', so none of its processes can be lost", role.name),
             "tolerate is for engines and services");
    else if (role.rendezvous != Rendezvous::none)
      refuse(
          fmt::format("the processes of role '{}' share one communicator, which fails when one of them ends",
                      role.name),
          "tolerate is for independent processes");
    else if (!role.spawned_by.empty())
      refuse(fmt::format("the processes of role '{}' are started by another role", role.name),
             "remove 'tolerate'");
    else if (*role.tolerate >= replicas(role))
      refuse(fmt::format("{} of role '{}' must remain, but there are {}: none can be lost", *role.tolerate,
                         role.name, replicas(role)),
             replicas(role) > 1 ? fmt::format("write tolerate: {{min: {}}} or less", replicas(role) - 1)
                                : "use more processes, or tolerate: {min: 0}");
    else if (is_in_group(plan, role))
      plan.warnings.push_back(
          fmt::format("role '{}' tolerates losses, but its weight sync is one communicator: the trainer must "
                      "recreate it without the lost process, or it hangs in it",
                      role.name));
  }
}

}  // namespace nlaunch::plan
