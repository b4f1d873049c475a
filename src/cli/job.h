#pragma once
#include <optional>
#include <string>

#include "cli/auditor.h"
#include "cli/context.h"
#include "cli/load.h"
#include "launch/gpu_lock.h"
#include "launch/run_folder.h"
#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/preflight.h"
#include "supervise/supervisor.h"

namespace nlaunch::cli {

struct JobOptions {
  std::string runs_dir = "runs";
  bool no_preflight = false;
  bool share = false;
  std::optional<PreflightLevel> level;
  bool strict = false;
};

/// One run on this machine, from a plan to its exit code: attempts, each bound, checked, supervised and
/// audited; the run directory that retells it.
class Job {
 public:
  Job(const plan::Plan& plan, JobOptions options, const Context& context, MachineSource& machine);

  /// To be called in the supervisor.
  int run(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);

 private:
  /// Where an attempt went, when it did not come to supervising.
  struct Refused {
    int exit_code = 0;
    std::string outcome;
    std::string sentence;
  };

  std::optional<Refused> prepare(unsigned attempt, const supervise::GuardianLink& guardian);
  std::optional<Refused> bind();
  std::optional<Refused> check(unsigned attempt, const supervise::GuardianLink& guardian);
  supervise::Outcome supervise(unsigned attempt, const supervise::GuardianLink& guardian);
  [[nodiscard]] bool again(const supervise::Outcome& outcome, unsigned attempt) const;

  void say_start() const;
  void say_end(const supervise::Outcome& outcome) const;
  int finish(int exit_code, std::string_view outcome, const std::string& sentence, supervise::Json details);
  void save(const std::string& name, const supervise::Json& content, const std::filesystem::path& folder);

  const plan::Plan& plan_;
  JobOptions options_;
  const Context& context_;
  MachineSource& machine_;
  launch::RunPaths paths_;
  supervise::EventLog events_;
  std::optional<launch::GpuLocks> locks_;
  std::optional<launch::Ports> ports_;
  plan::BoundNode node_;
  supervise::Json lock_;
  supervise::Json preflight_;  ///< for the summary
  launch::AuditReport audit_;
  bool trouble_said_ = false;
};

/// Says, and writes to the run's folder, that the supervisor was killed. Runs in the guardian.
void report_lost_supervisor(const supervise::SupervisorLost& lost);

}  // namespace nlaunch::cli
