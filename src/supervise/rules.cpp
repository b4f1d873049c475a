#include <algorithm>

#include "supervise/machine.h"

namespace nlaunch::supervise {
namespace {

ProcessRules rules_of(const plan::Role& role, const plan::BoundNode& node, std::size_t bound) {
  return {.bound = static_cast<std::uint32_t>(bound),
          .role = role.name,
          .waits_ready = node.processes[bound].ready.given(),
          .stop = role.stop,
          .restart = role.restart,
          .ends_run = role.ends_run,
          .exit_ok = role.exit_ok};
}

}  // namespace

Rules rules_of(const plan::Plan& plan, const plan::BoundNode& node) {
  Rules rules;
  rules.signals = plan.signals;
  rules.stages.resize(std::max<std::size_t>(1, plan.stages.size()));
  for (std::size_t bound = 0; bound < node.processes.size(); ++bound) {
    const auto role = plan.processes[node.processes[bound].process].role;
    if (!plan.roles[role].spawned_by.empty()) continue;
    const auto stage = std::ranges::find_if(
        plan.stages, [&](const auto& roles) { return std::ranges::find(roles, role) != roles.end(); });
    // A role that no stage names is not waited for by any, and starts at once.
    const auto at = stage == plan.stages.end() ? 0 : static_cast<std::size_t>(stage - plan.stages.begin());
    rules.stages[at].push_back(static_cast<ProcessIndex>(rules.processes.size()));
    rules.processes.push_back(rules_of(plan.roles[role], node, bound));
  }
  return rules;
}

}  // namespace nlaunch::supervise
