#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launch/bind/bind.h"
#include "plan/plan.h"
#include "session/caller.h"

namespace nlaunch::session {

/// What follows a job of a run.
enum class Next { nothing, requeue, successor, cancel_successor };
/// Decides by the outcome of the run (supervise::name_of), never by its exit code: a program may use the same
/// numbers. A submitted successor stays after a stop at the walltime, and after a failure that came late
/// enough. It is cancelled after success, after a stop by a person, and after a run that failed within
/// `min_runtime` (it would fail again).
Next next_after(const Walltime& walltime, bool has_successor, std::string_view outcome, Duration took);

/// How a run under Slurm continues after its walltime, as the experiment's `walltime: {then: ...}` sets.
class JobChaining {
 public:
  /// `arguments`: from the command line, also for the next job. All references must outlive this object.
  JobChaining(const plan::Plan& plan, std::string job_id, std::string runs_dir,
              std::vector<std::string> arguments, const Caller& caller);

  /// Under `chain`, submits the job that continues after this one, however this one ends.
  void begin(const launch::RunPaths& paths);
  /// The same for a run that another nlaunch started in this job: its successor has already been submitted.
  void take_over(const launch::RunPaths& paths);
  /// Cancels the successor if it should not run; requeues this job if it should.
  void end(std::string_view outcome);

 private:
  void submit_successor(const launch::RunPaths& paths, std::size_t number);
  void record_next(const std::string& job) const;

  const plan::Plan& plan_;
  std::string job_id_;
  std::string runs_dir_;
  std::vector<std::string> arguments_;
  const Caller& caller_;
  std::filesystem::path folder_;  ///< of the run
  std::string successor_;         ///< job id; empty: none
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace nlaunch::session
