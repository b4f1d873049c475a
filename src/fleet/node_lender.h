#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "fleet/agent_launcher.h"

namespace nlaunch::fleet {

/// Provides nodes outside the run's own job: each is a separate job that starts an agent. Each request to the
/// scheduler is a program that the leader runs without blocking.
class NodeLender {
 public:
  NodeLender() = default;
  virtual ~NodeLender() = default;
  NodeLender(const NodeLender&) = delete;
  NodeLender& operator=(const NodeLender&) = delete;

  /// Called once per attempt, before all others: writes what the jobs are built from.
  virtual Result<void> prepare(const launch::RunPaths& paths) = 0;
  /// Submits a job for `node` of the plan that avoids the hosts in `out`.
  [[nodiscard]] virtual AgentLauncher::Start ask(std::uint32_t node,
                                                 const std::set<std::string>& out) const = 0;
  /// The job id in the output of that program; empty if there is none.
  [[nodiscard]] virtual std::string job_in(std::string_view said) const = 0;
  /// Prints the ids of this user's unfinished jobs, one per line.
  [[nodiscard]] virtual AgentLauncher::Start list() const = 0;
  /// Cancels jobs, running or queued.
  [[nodiscard]] virtual AgentLauncher::Start give_back(const std::vector<std::string>& jobs) const = 0;
  /// The log file of a job's agent.
  [[nodiscard]] virtual std::string log_of(const std::string& job) const = 0;
};

}  // namespace nlaunch::fleet
