#pragma once
#include <chrono>
#include <string>

#include "cli/context.h"
#include "launch/bind.h"
#include "plan/plan.h"

namespace nlaunch::cli {

/// How a run under Slurm goes on after its walltime, as the experiment's `walltime: {then: ...}` says.
class Continuation {
 public:
  /// All arguments outlive this.
  Continuation(const plan::Plan& plan, std::string job_id, std::string runs_dir, const Context& context);

  /// Under `chain`, submits the job that goes on after this one, however this one ends.
  void begin(const launch::RunPaths& paths);
  /// Cancels the successor where it should not run; requeues this job where it should.
  void end(int exit_code);

 private:
  void submit_successor(const launch::RunPaths& paths, std::size_t number);
  void record_next(const std::string& job) const;

  const plan::Plan& plan_;
  std::string job_id_;
  std::string runs_dir_;
  const Context& context_;
  std::filesystem::path folder_;  ///< of the run
  std::string successor_;         ///< id of the job; empty: none
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace nlaunch::cli
