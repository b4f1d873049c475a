#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/context.h"
#include "cli/place.h"
#include "launch/run_folder.h"
#include "plan/plan.h"

namespace nlaunch::cli {

struct JobOptions {
  std::string runs_dir = "runs";
  bool no_preflight = false;
  std::optional<PreflightLevel> level;
  bool strict = false;
};

/// One run, from a plan to its exit code: attempts, each bound, checked, supervised and audited; the run
/// directory that retells it.
class Job {
 public:
  /// Makes the place of one attempt.
  using MakePlace = std::function<std::unique_ptr<Place>(const supervise::GuardianLink&)>;
  Job(const plan::Plan& plan, JobOptions options, const Context& context, MakePlace make_place);

  /// To be called in the supervisor.
  int run(const launch::RunPaths& paths, const supervise::GuardianLink& guardian);

 private:
  std::optional<Place::Refused> prepare(unsigned attempt, const supervise::GuardianLink& guardian);
  std::optional<Place::Refused> check(unsigned attempt, const supervise::GuardianLink& guardian);
  supervise::Outcome supervise(unsigned attempt);
  [[nodiscard]] bool again(const supervise::Outcome& outcome, unsigned attempt) const;

  void say_start() const;
  void say_end(const supervise::Outcome& outcome) const;
  int finish(int exit_code, std::string_view outcome, const std::string& sentence, supervise::Json details);
  void save(const std::string& name, const supervise::Json& content, const std::filesystem::path& folder);

  const plan::Plan& plan_;
  JobOptions options_;
  const Context& context_;
  MakePlace make_place_;
  launch::RunPaths paths_;
  supervise::EventLog events_;
  std::unique_ptr<Place> place_;  ///< of the attempt that goes on, or of the last one
  supervise::Json preflight_;     ///< for the summary
  Place::Audit audit_;
  bool trouble_said_ = false;
};

/// Says, and writes to the run's folder, that the supervisor was killed. Runs in the guardian.
void report_lost_supervisor(const supervise::SupervisorLost& lost);

}  // namespace nlaunch::cli
