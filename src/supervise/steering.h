#pragma once
#include <string>
#include <vector>

#include "supervise/requests.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// What becomes of a request.
struct Decision {
  Answer answer;
  std::vector<Event> events;  ///< for the table; none where it is not granted
};

/// Pure. `hosts`: the node that each process is on, by ProcessIndex; all are empty on one machine.
Decision decide(const plan::Plan& plan, const Rules& rules, const State& state,
                const std::vector<std::string>& hosts, const RunRequest& request);

}  // namespace nlaunch::supervise
