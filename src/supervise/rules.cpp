#include <algorithm>
#include <map>
#include <utility>

#include "base/scheduler_traits.h"
#include "plan/elastic.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {
namespace {

/// The leader of a replica decides when the replica is ready.
ProcessRules::Ready ready_of(const plan::Ready& ready, bool leads) {
  if (!leads && !ready.exited) return ProcessRules::Ready::started;
  if (ready.exited) return ProcessRules::Ready::exited;
  return ready.given() ? ProcessRules::Ready::checked : ProcessRules::Ready::started;
}

void add_borrowed(const plan::Plan& plan, Rules& rules) {
  const auto index_of = [&](std::uint32_t process) {
    const auto found = std::ranges::lower_bound(rules.processes, process, {}, &ProcessRules::process);
    return static_cast<ProcessIndex>(found - rules.processes.begin());
  };
  for (const auto& pool : plan.pools) {
    if (!pool.elastic) continue;
    auto& borrowed = rules.borrowed.emplace_back(BorrowedNodes{pool.elastic->min, {}});
    for (const auto& node : plan::processes_by_node(plan, pool)) {
      auto& own = borrowed.nodes.emplace_back();
      for (const auto process : node) own.push_back(index_of(process));
    }
  }
}

}  // namespace

Rules rules_of(const plan::Plan& plan) {
  Rules rules;
  rules.signals = plan.signals;
  rules.walltime = plan.walltime && traits_of(plan.scheduler).walltime == WalltimeUse::honoured;
  rules.stages.resize(std::max<std::size_t>(1, plan.stages.size()));
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<ProcessIndex>> replicas;
  for (std::uint32_t process = 0; process < plan.processes.size(); ++process) {
    const auto& role = plan.role_of(plan.processes[process]);
    if (!role.spawned_by.empty()) continue;
    const auto stage = std::ranges::find_if(plan.stages, [&](const auto& roles) {
      return std::ranges::find(roles, plan.processes[process].role) != roles.end();
    });
    // A role that is in no stage is not awaited by any and starts immediately.
    const auto at = stage == plan.stages.end() ? 0 : static_cast<std::size_t>(stage - plan.stages.begin());
    const auto own = static_cast<ProcessIndex>(rules.processes.size());
    rules.stages[at].push_back(own);
    const auto in = plan::in_replica(role, plan.processes[process]);
    if (role.replica) replicas[{plan.processes[process].role, in.index}].push_back(own);
    rules.processes.push_back({.process = process,
                               .role = role.name,
                               .ready = ready_of(role.ready, in.rank == 0),
                               .stop = role.stop,
                               .restart = role.restart,
                               .ends_run = role.ends_run,
                               .exit_ok = role.exit_ok,
                               .leave = role.leave,
                               .saves = role.kind == RoleKind::learner,
                               .watched = (role.alive || role.throughput) && in.rank == 0,
                               .gets_fresh = role.fresh && in.rank == 0,
                               .tolerate = role.tolerate,
                               .borrowed = plan.is_borrowed(plan.processes[process].node)});
    if (rules.walltime && role.kind == RoleKind::learner) {
      rules.processes.back().walltime_signal = plan.walltime->signal;
    }
  }
  for (auto& [where, members] : replicas) {
    if (members.size() < 2) continue;
    for (const auto member : members)
      rules.processes[member].replica = static_cast<std::uint32_t>(rules.replicas.size());
    rules.replicas.push_back(std::move(members));
  }
  add_borrowed(plan, rules);
  return rules;
}

}  // namespace nlaunch::supervise
