#include "plan/tolerance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scheduler_traits.h"
#include "base/text.h"

namespace nlaunch::plan {
namespace {

/// A communicator of some weight sync ends for all when one of its ranks does.
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
      refuse(fmt::format("none of role '{}' can stand by", role.name),
             "standby is for engines and services that stand for themselves");
    else if (role.ports.empty())
      refuse(
          fmt::format("role '{}' has no ports: nobody is told of its processes, whether they stand by or not",
                      role.name),
          "write ports: [http]");
    else if (role.standby >= replicas(role))
      refuse(fmt::format("{} of role '{}' were to stand by, and there are {}: none would be used",
                         role.standby, role.name, replicas(role)),
             "count is with those that stand by: one more, or fewer that do");
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
      refuse(fmt::format("the run ends with role '{}', and none of its processes can be done without",
                         role.name),
             "tolerate is for engines and services");
    else if (role.rendezvous != Rendezvous::none)
      refuse(fmt::format("the processes of role '{}' have one communicator, which ends with each of them",
                         role.name),
             "tolerate is for processes that stand for themselves");
    else if (!role.spawned_by.empty())
      refuse(fmt::format("the processes of role '{}' are started by another role", role.name),
             "remove 'tolerate'");
    else if (*role.tolerate >= replicas(role))
      refuse(fmt::format("{} of role '{}' have to be left, and there are {}: none may be lost",
                         *role.tolerate, role.name, replicas(role)),
             replicas(role) > 1 ? fmt::format("write tolerate: {{min: {}}} or less", replicas(role) - 1)
                                : "more processes, or tolerate: {min: 0}");
    else if (is_in_group(plan, role))
      plan.warnings.push_back(fmt::format(
          "role '{}' tolerates losses, and its weight sync is one communicator: the trainer has to make it "
          "anew without the lost one, or waits in it",
          role.name));
  }
}

}  // namespace nlaunch::plan
