#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launch/bind/bind.h"
#include "plan/plan.h"
#include "session/caller.h"

namespace nlaunch::session {

/// What comes after a job of a run.
enum class Next { nothing, requeue, successor, cancel_successor };
/// By how the run ended, as supervise::name_of has it, and never by its exit code: a program may use the same
/// numbers. A successor that was submitted stays after a stop at the walltime, and after a failure that came
/// late enough. After success, a stop by a person, and a run that failed within `min_runtime` (it would fail
/// again) it is not wanted.
Next next_after(const Walltime& walltime, bool has_successor, std::string_view outcome, Duration took);

/// How a run under Slurm goes on after its walltime, as the experiment's `walltime: {then: ...}` says.
class JobChaining {
 public:
  /// `arguments`: of the command line, for the next job too. All references outlive this.
  JobChaining(const plan::Plan& plan, std::string job_id, std::string runs_dir,
              std::vector<std::string> arguments, const Caller& caller);

  /// Under `chain`, submits the job that goes on after this one, however this one ends.
  void begin(const launch::RunPaths& paths);
  /// The same for a run that another nlaunch had begun in this job: its successor is submitted already.
  void take_over(const launch::RunPaths& paths);
  /// Cancels the successor where it should not run; requeues this job where it should.
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
  std::string successor_;         ///< id of the job; empty: none
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace nlaunch::session
