#pragma once
#include "fleet/agent_launcher.h"
#include "launch/job/step.h"
#include "plan/plan.h"

namespace nlaunch::scheduler {

/// A step of a job whose nodes share a directory: the scheduler's program starts an agent on each node, which
/// finds its parameters in step.json of the attempt.
class StepLauncher : public fleet::AgentLauncher {
 public:
  /// `plan` must outlive this.
  explicit StepLauncher(const plan::Plan& plan) : plan_(plan) {}

  [[nodiscard]] std::string starter() const override;
  Result<std::vector<Start>> start(const launch::RunPaths& paths, std::uint16_t port,
                                   const std::string& token) override;
  Result<void> announce(const launch::RunPaths& paths, std::uint16_t port, const std::string& token) override;
  [[nodiscard]] std::string address() const override;
  Start start_again(const launch::RunPaths& paths, std::uint32_t node, const std::string& host) override;
  [[nodiscard]] std::uint32_t relayed() const override;
  /// A large step can take this long to start, and a shared file system to show a file.
  [[nodiscard]] Duration patience() const override { return std::chrono::minutes(2); }
  [[nodiscard]] bool shares_a_folder() const override { return true; }

 protected:
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }

 private:
  /// 0: all agents connect to the leader.
  [[nodiscard]] std::uint32_t fan_out() const;
  /// step.json, with which agents find the leader directly.
  [[nodiscard]] launch::Step step(const launch::RunPaths& paths, std::uint16_t port,
                                  const std::string& token) const;
  /// Whether the scheduler numbers the nodes in the order of nodes().
  [[nodiscard]] virtual bool counts_as_planned() const { return true; }
  /// Whether there can be several steps at the same time, on different nodes.
  [[nodiscard]] virtual bool divides() const { return false; }
  /// The nodes of each step; the first has those that the run cannot do without.
  [[nodiscard]] std::vector<std::vector<std::string>> steps() const;
  /// The program that executes `agent` once on each of `hosts`.
  [[nodiscard]] virtual Start start_agents(const launch::RunPaths& paths,
                                           const std::vector<std::string>& hosts,
                                           const std::vector<std::string>& agent) const = 0;

  const plan::Plan& plan_;
};

}  // namespace nlaunch::scheduler
