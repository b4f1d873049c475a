#pragma once
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "supervise/requests.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// A plan that replaces the run's plan for processes that start from now on.
struct Rebinding {
  const plan::Plan& after;
  std::vector<std::string> roles;  ///< the roles whose processes it changes
  std::string file;                ///< the file that contains it, by its name in the attempt
};
struct Rebinder {
  using Done = std::function<void(const std::string& why)>;
  /// Binds all nodes to it without changing anything yet. `done` gets the reason for a failure, or an empty
  /// text.
  std::function<void(const Rebinding& rebinding, Done done)> prepare;
  /// Processes that start from now on use what was prepared.
  std::function<void()> adopt;
};

/// The answer to a request and its effect.
struct Decision {
  Answer answer;
  std::vector<Event> events;  ///< for the state machine; empty if not granted
};

/// Pure. `hosts`: the node of each process, by ProcessIndex; all empty on a single machine.
Decision decide(const plan::Plan& plan, const Rules& rules, const State& state,
                const std::vector<std::string>& hosts, const RunRequest& request);

/// The roles whose processes start differently in another plan. Fails if there are none, if something differs
/// that cannot change during the run, or if one of them cannot be restarted.
std::expected<std::vector<std::string>, std::string> updatable_roles(const plan::Plan& before,
                                                                     const plan::Plan& after,
                                                                     const Rules& rules, const State& state);
/// Restarts the roles that `updatable_roles` named, if they are running.
Decision start_again(const plan::Plan& plan, const Rules& rules, const State& state,
                     const std::vector<std::string>& roles);

}  // namespace nlaunch::supervise
