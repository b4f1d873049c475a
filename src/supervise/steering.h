#pragma once
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "supervise/requests.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// A plan in place of the one that the run has, for processes that start from now on.
struct Rebinding {
  const plan::Plan& after;
  std::vector<std::string> roles;  ///< whose processes it changes
  std::string file;                ///< that has it, by its name in the attempt
};
struct Rebinder {
  using Done = std::function<void(const std::string& why)>;
  /// Binds all nodes to it, and changes nothing yet. `done` is told why that cannot be, or nothing.
  std::function<void(const Rebinding& rebinding, Done done)> prepare;
  /// What starts from now on begins with what was prepared.
  std::function<void()> adopt;
};

/// What becomes of a request.
struct Decision {
  Answer answer;
  std::vector<Event> events;  ///< for the table; none where it is not granted
};

/// Pure. `hosts`: the node that each process is on, by ProcessIndex; all are empty on one machine.
Decision decide(const plan::Plan& plan, const Rules& rules, const State& state,
                const std::vector<std::string>& hosts, const RunRequest& request);

/// The roles whose processes begin otherwise in another plan. A failure where there are none, where something
/// differs that cannot change while the run goes on, and where one of them cannot start again.
std::expected<std::vector<std::string>, std::string> updatable_roles(const plan::Plan& before,
                                                                     const plan::Plan& after,
                                                                     const Rules& rules, const State& state);
/// Roles that `updatable_roles` named start again, as far as they run.
Decision start_again(const plan::Plan& plan, const Rules& rules, const State& state,
                     const std::vector<std::string>& roles);

}  // namespace nlaunch::supervise
