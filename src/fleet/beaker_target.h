#pragma once
#include "launch/job/replica.h"
#include "plan/plan.h"
#include "session/caller.h"
#include "session/run_target.h"

/// A run in the replicas of a Beaker task, without srun or a shared directory. Each replica starts `nlaunch
/// run` with the same plan; the replica of rank 0 leads, the others are the agents of their nodes.
namespace nlaunch::fleet {

/// Why this replica cannot take part, as a message; empty if it can.
std::string misfit(const plan::Plan& plan, const launch::Replica& replica,
                   const std::vector<std::string>& environment);

/// The replicas, seen from their leader.
class BeakerTarget : public session::RunTarget {
 public:
  /// All arguments must outlive this. `share`: use GPUs that another run holds.
  BeakerTarget(const plan::Plan& plan, const launch::Replica& replica, bool share,
               const session::Caller& caller)
      : plan_(plan), replica_(replica), share_(share), caller_(caller) {}

  std::unique_ptr<session::AttemptHost> next(const supervise::GuardianLink& guardian) override;
  void record(const std::vector<preflight::Suspect>& /*suspects*/) override {}
  bool leave_out(const std::vector<preflight::Suspect>& /*suspects*/) override { return false; }

 private:
  const plan::Plan& plan_;
  const launch::Replica& replica_;
  bool share_;
  const session::Caller& caller_;
};

/// Runs the agent of a replica, for all attempts. Returns the exit code of the run.
int follow_leader(const plan::Plan& plan, const launch::Replica& replica, const session::Caller& caller);

/// Runs the agent of the leader's own node, for one attempt; `plan_file` is plan.json of the run.
int agent_of_leader(const std::string& plan_file, const session::Caller& caller);

/// Becomes the guarded process of an agent.
supervise::GuardianLink enter_agent(const std::string& host, const session::Caller& caller);

}  // namespace nlaunch::fleet
