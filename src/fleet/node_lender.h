#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "fleet/agent_launcher.h"

namespace nlaunch::fleet {

/// Nodes that are no part of the run's own job: each is a job of its own, which starts an agent. What is
/// asked of the scheduler is a program each time, which the leader runs without waiting for it.
class NodeLender {
 public:
  NodeLender() = default;
  virtual ~NodeLender() = default;
  NodeLender(const NodeLender&) = delete;
  NodeLender& operator=(const NodeLender&) = delete;

  /// Once for an attempt, before all others: writes what the jobs are made from.
  virtual Result<void> prepare(const launch::RunPaths& paths) = 0;
  /// Submits a job for `node` of the plan, which is on none of the hosts `out`.
  [[nodiscard]] virtual AgentLauncher::Start ask(std::uint32_t node,
                                                 const std::set<std::string>& out) const = 0;
  /// The job's id in what that program has written; empty: there is none.
  [[nodiscard]] virtual std::string job_in(std::string_view said) const = 0;
  /// Writes the ids of this user's jobs that are not over, a line each.
  [[nodiscard]] virtual AgentLauncher::Start list() const = 0;
  /// Ends jobs, or takes them out of the queue.
  [[nodiscard]] virtual AgentLauncher::Start give_back(const std::vector<std::string>& jobs) const = 0;
  /// Where a job writes what its agent says.
  [[nodiscard]] virtual std::string log_of(const std::string& job) const = 0;
};

}  // namespace nlaunch::fleet
