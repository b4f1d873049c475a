#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// A Slurm job, ready to be submitted.
struct JobScript {
  std::string text;
  std::filesystem::path plan_file;  ///< the frozen plan that it runs
};

/// The plan for a process elsewhere, which knows it only from this text. A text in it that is not UTF-8 would
/// arrive changed: a failure that names its place.
Result<std::string> plan_text(const plan::Plan& plan);

/// The same for a job, which knows its plan only from this text: it contains no secret, and a variable that
/// looks like one is a failure.
Result<std::string> frozen_plan_text(const plan::Plan& plan);

/// The frozen plan of a job and its path: RUNS/NAME/plans/HASH.json, so that the same plan has the same path.
struct FrozenPlan {
  std::string text;
  std::filesystem::path file;
};
Result<FrozenPlan> freeze_plan(const plan::Plan& plan, const std::filesystem::path& runs);
Result<void> save(const FrozenPlan& plan);

/// Writes the batch script of a plan, from its site's template or the built-in one, and creates what it
/// refers to: the frozen plan, and the directories of Slurm's logs, without which a job fails silently.
/// Creates nothing if there can be no script. `program` is nlaunch; `arguments` are passed to its `run`.
Result<JobScript> make_job_script(const plan::Plan& plan, const std::filesystem::path& runs,
                                  const std::string& program, const std::vector<std::string>& arguments);

/// Writes the batch script for the jobs that add nodes of an elastic pool to a run, and creates the
/// directories of their logs. Its argument is the index of a node in the plan.
Result<std::filesystem::path> make_borrowing_script(const plan::Plan& plan, const plan::SlurmComponent& pool,
                                                    const RunPaths& paths, const std::string& program);
/// The log of such a job's agent, unless the pool's directives set another. `job`: its id, or "%j".
std::filesystem::path borrowing_log(const RunPaths& paths, const std::string& job);

}  // namespace nlaunch::launch
