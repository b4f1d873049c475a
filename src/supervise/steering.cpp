#include "supervise/steering.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "plan/update.h"

namespace nlaunch::supervise {
namespace {

using Missing = ProcessState::Missing;

/// The processes of one replica, or a single process of a role without replicas.
struct Unit {
  std::string name;  ///< "engine.3"
  std::vector<ProcessIndex> members;
};

/// A few hundred names would fill a terminal.
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t kMost = 8;
  if (names.size() <= kMost) return text::join(names, ", ");
  const auto more = names.size() - kMost;
  names.resize(kMost);
  return fmt::format("{} and {} more", text::join(names, ", "), more);
}

class Steering {
 public:
  Steering(const plan::Plan& plan, const Rules& rules, const State& state, std::vector<std::string> hosts)
      : plan_(plan), rules_(rules), state_(state), hosts_(std::move(hosts)) {
    for (ProcessIndex process = 0; process < rules_.processes.size(); ++process) {
      const auto& of = plan_.processes[rules_.processes[process].process];
      const auto& role = plan_.role_of(of);
      auto& units = units_[role.name];
      const auto number = plan::in_replica(role, of).index;
      if (units.size() <= number) units.resize(number + 1);
      units[number].name = fmt::format("{}.{}", role.name, number);
      units[number].members.push_back(process);
    }
  }

  Decision restart(const std::string& what) const {
    const auto role = units_.find(what);
    const auto wanted = role != units_.end() ? role->second : unit_named(what);
    if (wanted.empty()) return refuse(unknown(what));
    const auto& settings = role_of(wanted.front());
    if (settings.kind == RoleKind::task)
      return refuse(fmt::format("'{}' is a task, which exits on its own", settings.name));
    const bool all = wanted.size() == units_.at(settings.name).size();
    if (settings.rendezvous != Rendezvous::none && !all) {
      return refuse(
          fmt::format("the processes of '{0}' share one communicator: nlaunch restart RUN {0} restarts all "
                      "of them",
                      settings.name));
    }
    event::RestartWanted event;
    std::vector<std::string> names;
    for (const auto& unit : wanted) {
      if (!std::ranges::any_of(unit.members, [&](auto process) { return runs(process); })) continue;
      names.push_back(unit.name);
      event.processes.insert(event.processes.end(), unit.members.begin(), unit.members.end());
    }
    if (names.empty()) return refuse(fmt::format("'{}' is not running", what));
    return {{true, fmt::format("restarting {}", some_of(names))}, {std::move(event)}};
  }

  /// Why a role cannot be restarted at all; empty if it can when it runs.
  std::string why_not_again(const std::string& role) const {
    const auto found = units_.find(role);
    if (found == units_.end())
      return fmt::format("role '{}' is started by another role: restart that one", role);
    if (role_of(found->second.front()).kind == RoleKind::task)
      return fmt::format("'{}' is a task, which exits on its own", role);
    return "";
  }

  Decision drain(const std::string& node) const {
    std::vector<ProcessIndex> there;
    std::set<std::string> known;
    for (ProcessIndex process = 0; process < hosts_.size(); ++process) {
      if (!hosts_[process].empty()) known.insert(hosts_[process]);
      if (hosts_[process] == node && !node.empty()) there.push_back(process);
    }
    if (known.empty()) return refuse("the run is on one machine: its processes cannot move to another node");
    if (there.empty()) {
      return refuse(fmt::format("no process of the run is on '{}': its nodes are {}", node,
                                some_of(std::vector(known.begin(), known.end()))));
    }
    const auto first = [&](auto process) {
      return plan_.processes[rules_.processes[process].process].node == 0;
    };
    const auto is = [&](Missing missing) {
      return std::ranges::any_of(there,
                                 [&](auto process) { return state_.processes[process].missing == missing; });
    };
    if (is(Missing::draining)) return refuse(fmt::format("{} is already draining", node));
    if (is(Missing::away)) return refuse(fmt::format("{} is lost; another node will take its place", node));
    if (std::ranges::any_of(there, first))
      return refuse(fmt::format("nlaunch itself runs on {}, the first node of the run", node));
    std::vector<ProcessIndex> running;
    std::ranges::copy_if(there, std::back_inserter(running), [&](auto process) {
      const auto& state = state_.processes[process];
      return state.missing == Missing::no && !std::holds_alternative<Ended>(state.phase);
    });
    for (const auto process : running) {
      if (rules_.processes[process].tolerate) continue;
      return refuse(fmt::format("role '{}' runs on {} and has no 'tolerate': the run would end without it",
                                rules_.processes[process].role, node));
    }
    if (!can_do_without(rules_, state_, running))
      return refuse(
          fmt::format("without {}, fewer processes would be left than the min of 'tolerate'", node));
    std::vector<std::string> names;
    for (const auto process : running)
      names.push_back(plan_.name_of(plan_.processes[rules_.processes[process].process]));
    return {{true, names.empty() ? fmt::format("{} is drained: the run has no processes there", node)
                                 : fmt::format("draining {}: stopping {}", node, some_of(names))},
            {event::Drain{there}}};
  }

  Decision scale(const std::string& name, std::uint32_t count) const {
    const auto found = units_.find(name);
    if (found == units_.end()) return refuse(unknown(name));
    const auto& units = found->second;
    const auto& role = role_of(units.front());
    if (role.kind == RoleKind::task || role.ends_run || role.rendezvous != Rendezvous::none)
      return refuse(fmt::format("role '{}' cannot be scaled: only engines and services can", name));
    if (count > units.size()) {
      return refuse(fmt::format("the plan has room for {} of '{}', not for {}", units.size(), name, count));
    }
    const auto parked = [&](const Unit& unit) { return state_.processes[unit.members.front()].parked; };
    const auto given_up = [&](const Unit& unit) { return missing(unit) == Missing::given_up; };
    const auto lives = [&](const Unit& unit) { return missing(unit) == Missing::no; };
    // Units that wait for a node are removed first, then those with the highest index.
    std::vector<const Unit*> used;
    for (const auto& unit : units)
      if (!parked(unit) && !given_up(unit)) used.push_back(&unit);
    std::ranges::stable_sort(used, std::greater(), [&](const Unit* unit) { return lives(*unit); });
    auto now = used.size();
    const auto left =
        std::min<std::size_t>(count, static_cast<std::size_t>(std::ranges::count_if(units, lives)));
    const auto least = std::max(role.tolerate.value_or(1), 1U);
    if (count < least || (count < now && left < least)) {
      return refuse(fmt::format("'{}' needs at least {}, and {} would be left", name, least, left));
    }
    Decision decision;
    std::vector<std::string> names;
    event::Park park;
    event::Unpark unpark;
    for (; now > count; --now) {
      const auto& unit = *used[now - 1];
      park.processes.insert(park.processes.end(), unit.members.begin(), unit.members.end());
      names.push_back(unit.name);
    }
    for (auto unit = units.begin(); unit != units.end() && now < count; ++unit) {
      if (!parked(*unit) || given_up(*unit)) continue;
      unpark.processes.insert(unpark.processes.end(), unit->members.begin(), unit->members.end());
      names.push_back(unit->name);
      ++now;
    }
    if (now != count) {
      return refuse(fmt::format("{} of '{}' are permanently lost: it can have at most {} now",
                                units.size() - now, name, now));
    }
    std::ranges::sort(names);
    const bool fewer = !park.processes.empty();
    if (fewer) decision.events.emplace_back(std::move(park));
    if (!unpark.processes.empty()) decision.events.emplace_back(std::move(unpark));
    decision.answer = {true, names.empty() ? fmt::format("'{}' already has {}", name, count)
                                           : fmt::format("scaling '{}' to {}: {} {}", name, count,
                                                         fewer ? "stopping" : "starting", some_of(names))};
    return decision;
  }

 private:
  static Decision refuse(std::string why) { return {{false, std::move(why)}, {}}; }

  [[nodiscard]] bool runs(ProcessIndex process) const {
    const auto& state = state_.processes[process];
    return state.missing == Missing::no &&
           (std::holds_alternative<Starting>(state.phase) || std::holds_alternative<Running>(state.phase) ||
            std::holds_alternative<Serving>(state.phase));
  }
  [[nodiscard]] const plan::Role& role_of(const Unit& unit) const {
    return plan_.role_of(plan_.processes[rules_.processes[unit.members.front()].process]);
  }
  [[nodiscard]] Missing missing(const Unit& unit) const {
    return state_.processes[unit.members.front()].missing;
  }

  /// "engine.3"; "engine.3.1" means its replica.
  [[nodiscard]] std::vector<Unit> unit_named(const std::string& name) const {
    for (const auto& [role, units] : units_) {
      for (const auto& unit : units) {
        const bool member = std::ranges::any_of(unit.members, [&](auto process) {
          return plan_.name_of(plan_.processes[rules_.processes[process].process]) == name;
        });
        if (unit.name == name || member) return {unit};
      }
    }
    return {};
  }

  [[nodiscard]] std::string unknown(const std::string& what) const {
    std::vector<std::string> known;
    for (const auto& [role, units] : units_)
      known.push_back(units.size() > 1 ? fmt::format("{0} ({0}.0 to {0}.{1})", role, units.size() - 1)
                                       : role);
    return fmt::format("'{}' not found in the run; it has {}", what, text::join(known, ", "));
  }

  const plan::Plan& plan_;
  const Rules& rules_;
  const State& state_;
  std::vector<std::string> hosts_;
  std::map<std::string, std::vector<Unit>> units_;  ///< by role, in order
};

}  // namespace

std::expected<std::vector<std::string>, std::string> updatable_roles(const plan::Plan& before,
                                                                     const plan::Plan& after,
                                                                     const Rules& rules, const State& state) {
  if (!std::holds_alternative<Going>(state.phase)) return std::unexpected("the run is ending");
  const auto update = plan::update_of(before, after);
  if (!update.refused.empty())
    return std::unexpected(fmt::format("{} cannot change during the run", text::join(update.refused, ", ")));
  if (update.roles.empty()) return std::unexpected("the plan is unchanged");
  std::vector<std::string> roles;
  for (const auto& role : update.roles) {
    const auto why = Steering(before, rules, state, {}).why_not_again(role.role);
    if (!why.empty()) return std::unexpected(why);
    roles.push_back(role.role);
  }
  return roles;
}

Decision start_again(const plan::Plan& plan, const Rules& rules, const State& state,
                     const std::vector<std::string>& roles) {
  const Steering steering(plan, rules, state, {});
  Decision all{{true, ""}, {}};
  for (const auto& role : roles) {
    const auto one = steering.restart(role);
    all.answer.text +=
        (all.answer.text.empty() ? "" : "; ") +
        (one.answer.granted ? one.answer.text : fmt::format("'{}' gets the new plan when it starts", role));
    all.events.insert(all.events.end(), one.events.begin(), one.events.end());
  }
  return all;
}

Decision decide(const plan::Plan& plan, const Rules& rules, const State& state,
                const std::vector<std::string>& hosts, const RunRequest& request) {
  if (!std::holds_alternative<Going>(state.phase)) return {{false, "the run is ending"}, {}};
  const Steering steering(plan, rules, state, hosts);
  switch (request.kind) {
    case RunRequest::Kind::restart:
      return steering.restart(request.what);
    case RunRequest::Kind::drain:
      return steering.drain(request.what);
    case RunRequest::Kind::scale:
      return steering.scale(request.what, request.count);
    case RunRequest::Kind::update:
      break;  // needs a plan
  }
  return {{false, "unknown kind of request"}, {}};
}

}  // namespace nlaunch::supervise
