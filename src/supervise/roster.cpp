#include "supervise/roster.h"

#include <algorithm>
#include <set>
#include <utility>

namespace nlaunch::supervise {

Roster::Roster(const plan::Plan& plan, const Rules& rules, AddressOf address_of)
    : plan_(plan), rules_(rules), address_of_(std::move(address_of)), fit_(rules.processes.size()) {
  for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
    const auto& of = process_of(process);
    if (of.ports.empty() || leader_of(process) != process) continue;
    auto& role = roles_[of.role];
    fit_[process] =
        !rules_.processes[process].borrowed && role.members.size() < plan::active_replicas(plan_.role_of(of));
    role.members.push_back({process, fit_[process]});
  }
}

void Roster::begin_with(std::uint32_t index, std::uint64_t generation,
                        const std::vector<std::string>& addresses) {
  const auto role = roles_.find(index);
  if (role == roles_.end()) return;
  role->second.generation = generation;
  for (auto& member : role->second.members) {
    member.address = address_of_(process_of(member.leader));
    member.used = std::ranges::find(addresses, member.address) != addresses.end();
    if (!member.used) member.address.clear();
    fit_[member.leader] = member.used;
  }
}

ProcessIndex Roster::leader_of(ProcessIndex process) const {
  const auto& replica = rules_.processes[process].replica;
  return replica ? rules_.replicas[*replica].front() : process;
}

const plan::Process& Roster::process_of(ProcessIndex process) const {
  return plan_.processes[rules_.processes[process].process];
}

/// A replica in use stays in use as long as possible; a new one must be serving.
bool Roster::is_fit(const State& state, const Member& member) {
  const bool serves = std::holds_alternative<Serving>(state.processes[member.leader].phase);
  return is_listed(state, member.leader) && (member.used || serves);
}

std::vector<Roster::Change> Roster::update(const State& state, std::span<const ProcessIndex> touched) {
  if (!std::holds_alternative<Going>(state.phase)) return {};
  std::set<std::uint32_t> of_roles;
  for (const auto process : touched) {
    const auto index = process_of(process).role;
    const auto role = roles_.find(index);
    if (role == roles_.end() || of_roles.contains(index)) continue;
    const auto member =
        std::ranges::lower_bound(role->second.members, leader_of(process), {}, &Member::leader);
    if (is_fit(state, *member) != fit_[member->leader]) of_roles.insert(index);
  }
  std::vector<Change> changes;
  for (const auto index : of_roles) {
    auto change = change_of(state, index);
    if (!change.added.empty() || !change.removed.empty()) changes.push_back(std::move(change));
  }
  return changes;
}

Roster::Change Roster::change_of(const State& state, std::uint32_t index) {
  auto& role = roles_.at(index);
  for (auto& member : role.members) {
    if (member.used && member.address.empty()) member.address = address_of_(process_of(member.leader));
    fit_[member.leader] = is_fit(state, member);
    member.used = member.used && fit_[member.leader];
  }
  const auto used = static_cast<std::size_t>(std::ranges::count_if(role.members, &Member::used));
  auto free = plan::active_replicas(plan_.roles[index]) - used;
  Change change{index, role.generation + 1, {}, {}, {}};
  for (auto& member : role.members) {
    if (!member.used && fit_[member.leader] && free > 0) {
      member.used = true;
      --free;
    }
    auto now = member.used ? address_of_(process_of(member.leader)) : std::string();
    const auto before = std::exchange(member.address, now);
    if (!now.empty()) change.addresses.push_back(now);
    if (now == before) continue;
    if (!before.empty()) change.removed.push_back(before);
    if (!now.empty()) change.added.push_back(std::move(now));
  }
  if (!change.added.empty() || !change.removed.empty()) role.generation = change.generation;
  return change;
}

}  // namespace nlaunch::supervise
