#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/run_dir/run_folder.h"
#include "plan/plan.h"
#include "session/caller.h"
#include "session/interrupts.h"
#include "session/run_target.h"
#include "supervise/checkpoints.h"

namespace nlaunch::session {

struct RunOptions {
  std::string runs_dir = "runs";
  bool no_preflight = false;
  std::optional<PreflightLevel> level;
  bool strict = false;
  bool succeeds = false;  ///< of take_over: nobody else leads the run, which ends where this one cannot
};

/// One run, from a plan to its exit code: attempts, each bound, checked, supervised and audited; the run
/// directory that retells it. To be made in the supervisor: from then on a signal that ends a run ends it
/// well.
class Run {
 public:
  /// All arguments outlive this. `plan` is replaced when an attempt ends during which it was updated.
  Run(plan::Plan& plan, RunOptions options, const Caller& caller, RunTarget& target);

  int execute(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);
  /// Goes on with a run whose nlaunch has ended and whose agents keep its processes.
  int take_over(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);
  /// How it ended, as summary.json has it: what supervise::name_of says of its cause, or how far it came.
  [[nodiscard]] const std::string& outcome() const { return outcome_; }

 private:
  void know_what_was_asked();
  void open_events(std::string_view first, const supervise::GuardianLink& guardian);
  /// The attempts from this one on. `taken_over`: its processes run.
  int go_on(unsigned attempt, bool taken_over, const supervise::GuardianLink& guardian);
  std::optional<AttemptHost::Refused> prepare(unsigned attempt, const supervise::GuardianLink& guardian);
  std::optional<AttemptHost::Refused> check(const supervise::GuardianLink& guardian);
  /// What has come in between that ends the run, and when that was.
  [[nodiscard]] std::optional<AttemptHost::Refused> stopped(std::string_view when,
                                                            const supervise::GuardianLink& guardian) const;
  supervise::Outcome supervise(unsigned attempt);
  void look_for_slow_node();
  bool again(const supervise::Outcome& outcome);
  [[nodiscard]] unsigned counted_restarts() const;
  [[nodiscard]] bool stalled_to_restart(const supervise::Outcome& outcome) const;
  /// Waits for the next attempt. False: something has ended the run, which is its outcome then.
  [[nodiscard]] bool back_off(supervise::Outcome& outcome, const supervise::GuardianLink& guardian) const;

  void say_start() const;
  void say_end(const supervise::Outcome& outcome) const;
  /// Of `watch.metrics`, what all logs of the run hold; says which counts of the ranks differ.
  void add_metrics(supervise::Json& summary) const;
  int finish(int exit_code, std::string_view outcome, const std::string& sentence, supervise::Json details);
  void save(const std::string& name, const supervise::Json& content, const std::filesystem::path& folder);

  plan::Plan& plan_;
  RunOptions options_;
  const Caller& caller_;
  RunTarget& target_;
  supervise::Rules rules_;
  Interrupts interrupts_;
  launch::RunPaths paths_;
  supervise::EventLog events_;
  std::unique_ptr<AttemptHost> host_;  ///< of the attempt that goes on, or of the last one
  supervise::Json preflight_;          ///< for the summary
  AttemptHost::Audit audit_;
  std::map<std::string, std::vector<std::string>> nccl_;  ///< by role: what NCCL read and what was set
  std::vector<std::chrono::steady_clock::time_point> restarts_;
  std::string outcome_;
  bool trouble_said_ = false;
};

/// How a run is guarded.
struct Guarding {
  std::string
      scratch{};  ///< that this nlaunch itself has for it, to be removed; empty: its agents have theirs
  unsigned successions = 0;  ///< so many in a row have taken the run over, each soon after the other
  bool inherits = false;     ///< this is one of them, under the pid of the first
};
/// Splits this process in a guardian, which says and writes to the run's folder when the supervisor was
/// killed, and the supervisor, in which it returns. Where the agents of the plan go on for a while, the
/// guardian becomes the nlaunch that takes the run over.
supervise::GuardianLink guard_run(const plan::Plan& plan, const Caller& caller, Guarding how = {});

}  // namespace nlaunch::session
