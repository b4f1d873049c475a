#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/run_dir/run_folder.h"
#include "plan/plan.h"
#include "session/caller.h"
#include "session/exporter.h"
#include "session/interrupts.h"
#include "session/notifier.h"
#include "session/run_target.h"
#include "supervise/checkpoints.h"

namespace nlaunch::session {

struct RunOptions {
  std::string runs_dir = "runs";
  bool no_preflight = false;
  std::optional<PreflightLevel> level;
  bool strict = false;
  bool fresh = false;     ///< the preflight in full, even if it passed a short time ago
  bool succeeds = false;  ///< for take_over: no other nlaunch can lead the run
};

/// One run, from a plan to its exit code: its attempts, each bound, checked, supervised and audited, and the
/// run directory that records them. Create it in the supervisor: from then on, a signal that ends a run ends
/// it gracefully.
class Run {
 public:
  /// All arguments must outlive this object. `plan` is replaced at the end of an attempt during which it was
  /// updated.
  Run(plan::Plan& plan, RunOptions options, const Caller& caller, RunTarget& target, Exporter& exporter);

  int execute(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);
  /// Continues a run whose nlaunch has exited while its agents keep the processes running.
  int take_over(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);
  /// The outcome, as in summary.json: supervise::name_of its cause, or how far the run got.
  [[nodiscard]] const std::string& outcome() const { return outcome_; }

 private:
  void know_what_was_asked();
  void open_events(std::string_view first, const supervise::GuardianLink& guardian);
  /// The attempts from this one on. `taken_over`: its processes are already running.
  int go_on(unsigned attempt, bool taken_over, const supervise::GuardianLink& guardian);
  std::optional<AttemptHost::Refused> prepare(unsigned attempt, const supervise::GuardianLink& guardian);
  std::optional<AttemptHost::Refused> check(const supervise::GuardianLink& guardian);
  /// What has ended the run in the meantime, if anything; `when` is for the message.
  [[nodiscard]] std::optional<AttemptHost::Refused> stopped(std::string_view when,
                                                            const supervise::GuardianLink& guardian) const;
  supervise::Outcome supervise(unsigned attempt);
  void look_for_slow_node();
  bool again(const supervise::Outcome& outcome);
  [[nodiscard]] unsigned counted_restarts() const;
  [[nodiscard]] bool stalled_to_restart(const supervise::Outcome& outcome) const;
  /// Waits until the next attempt. False: something has ended the run, which is its outcome now.
  [[nodiscard]] bool back_off(supervise::Outcome& outcome, const supervise::GuardianLink& guardian) const;

  void say_start() const;
  void say_end(const supervise::Outcome& outcome) const;
  /// Adds what all logs of the run contain for `watch.metrics`; prints which ranks have different counts.
  void add_metrics(supervise::Json& summary) const;
  std::string write_report();
  void report_end(int exit_code, const std::string& sentence, const std::string& facts);
  void write_summary(int exit_code, std::string_view outcome, const std::string& sentence,
                     supervise::Json details, std::span<const supervise::ProcessReport> processes);
  int finish(int exit_code, std::string_view outcome, const std::string& sentence, supervise::Json details,
             std::span<const supervise::ProcessReport> processes = {});
  void save(const std::string& name, const supervise::Json& content, const std::filesystem::path& folder);
  void save_text(const std::filesystem::path& file, const std::string& text);

  plan::Plan& plan_;
  RunOptions options_;
  const Caller& caller_;
  RunTarget& target_;
  Exporter& exporter_;
  supervise::Rules rules_;
  Interrupts interrupts_;
  launch::RunPaths paths_;
  supervise::EventLog events_;
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<AttemptHost> host_;  ///< of the current attempt, or of the last one
  supervise::Json lock_;               ///< of the last attempt that was bound
  supervise::Json preflight_;          ///< for the summary
  AttemptHost::Audit audit_;
  std::map<std::string, std::vector<std::string>> nccl_;  ///< by role: what NCCL read and what was set
  std::vector<std::chrono::steady_clock::time_point> restarts_;
  std::vector<supervise::Link> links_;  ///< of all attempts
  std::string outcome_;
  bool trouble_said_ = false;
};

/// How a run is guarded.
struct Guarding {
  std::string scratch{};     ///< directory that this nlaunch must remove; empty: the agents own theirs
  unsigned successions = 0;  ///< successors in a row that each took over soon after the one before
  bool inherits = false;     ///< this is a successor, under the pid of the first
  sys::ProcessIds spared{};  ///< with `inherits`: existing descendants that do not belong to the run
};
/// Splits this process into a guardian and a supervisor, and returns in the supervisor. If the supervisor is
/// killed, the guardian prints it and writes it to the run directory. If the agents of the plan keep running
/// for a while, the guardian becomes the nlaunch that takes over the run.
supervise::GuardianLink guard_run(const plan::Plan& plan, const Caller& caller, Guarding how = {});

}  // namespace nlaunch::session
