#include <algorithm>

#include "base/scheduler_traits.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {
namespace {

ProcessRules::Ready ready_of(const plan::Ready& ready) {
  if (ready.exited) return ProcessRules::Ready::exited;
  return ready.given() ? ProcessRules::Ready::checked : ProcessRules::Ready::started;
}

}  // namespace

Rules rules_of(const plan::Plan& plan) {
  Rules rules;
  rules.signals = plan.signals;
  rules.walltime = plan.walltime && traits_of(plan.scheduler).walltime == WalltimeUse::honoured;
  rules.stages.resize(std::max<std::size_t>(1, plan.stages.size()));
  for (std::uint32_t process = 0; process < plan.processes.size(); ++process) {
    const auto& role = plan.role_of(plan.processes[process]);
    if (!role.spawned_by.empty()) continue;
    const auto stage = std::ranges::find_if(plan.stages, [&](const auto& roles) {
      return std::ranges::find(roles, plan.processes[process].role) != roles.end();
    });
    // A role that no stage names is not waited for by any, and starts at once.
    const auto at = stage == plan.stages.end() ? 0 : static_cast<std::size_t>(stage - plan.stages.begin());
    rules.stages[at].push_back(static_cast<ProcessIndex>(rules.processes.size()));
    rules.processes.push_back({.process = process,
                               .role = role.name,
                               .ready = ready_of(role.ready),
                               .stop = role.stop,
                               .restart = role.restart,
                               .ends_run = role.ends_run,
                               .exit_ok = role.exit_ok,
                               .leave = role.leave});
    if (rules.walltime && role.kind == RoleKind::learner) {
      rules.processes.back().walltime_signal = plan.walltime->signal;
    }
  }
  return rules;
}

}  // namespace nlaunch::supervise
