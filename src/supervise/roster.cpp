#include "supervise/roster.h"

#include <set>
#include <utility>

namespace nlaunch::supervise {

Roster::Roster(const plan::Plan& plan, const Rules& rules, AddressOf address_of)
    : plan_(plan), rules_(rules), address_of_(std::move(address_of)), listed_(rules.processes.size(), true) {
  for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
    const auto& of = process_of(process);
    if (!of.ports.empty() && leader_of(process) == process) roles_[of.role].leaders.push_back(process);
  }
}

ProcessIndex Roster::leader_of(ProcessIndex process) const {
  const auto& replica = rules_.processes[process].replica;
  return replica ? rules_.replicas[*replica].front() : process;
}

const plan::Process& Roster::process_of(ProcessIndex process) const {
  return plan_.processes[rules_.processes[process].process];
}

std::vector<Roster::Change> Roster::update(const State& state, std::span<const ProcessIndex> touched) {
  if (!std::holds_alternative<Going>(state.phase)) return {};
  std::set<std::uint32_t> changed;
  for (const auto process : touched) {
    const auto leader = leader_of(process);
    const bool listed = is_listed(state, leader);
    if (listed == listed_[leader]) continue;
    changed.insert(process_of(leader).role);
  }
  std::vector<Change> changes;
  for (const auto index : changed) {
    const auto found = roles_.find(index);
    if (found == roles_.end()) continue;
    auto& role = found->second;
    const bool first = role.addresses.empty();
    Change change{index, ++role.generation, {}, {}, {}};
    for (std::size_t i = 0; i < role.leaders.size(); ++i) {
      const auto leader = role.leaders[i];
      if (first) role.addresses.push_back(address_of_(process_of(leader)));
      listed_[leader] = is_listed(state, leader);
      auto now = listed_[leader] ? address_of_(process_of(leader)) : std::string();
      const auto before = std::exchange(role.addresses[i], now);
      if (!now.empty()) change.addresses.push_back(now);
      if (now == before) continue;
      if (!before.empty()) change.removed.push_back(before);
      if (!now.empty()) change.added.push_back(std::move(now));
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace nlaunch::supervise
