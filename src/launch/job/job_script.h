#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// A job for Slurm, ready to be submitted.
struct JobScript {
  std::string text;
  std::filesystem::path plan_file;  ///< the frozen plan that it runs
};

/// The plan for a process elsewhere, which runs it from this text alone. A text in it that is not UTF-8 would
/// be another one there: a failure that says where it stands.
Result<std::string> plan_text(const plan::Plan& plan);

/// The same for a job, which knows its plan from this text alone: it keeps no secret, and a variable that
/// looks like one is a failure.
Result<std::string> frozen_plan_text(const plan::Plan& plan);

/// The frozen plan of a job, and where it is saved: RUNS/NAME/plans/HASH.json, so that the same plan gives
/// the same path.
struct FrozenPlan {
  std::string text;
  std::filesystem::path file;
};
Result<FrozenPlan> freeze_plan(const plan::Plan& plan, const std::filesystem::path& runs);
Result<void> save(const FrozenPlan& plan);

/// Writes the batch script of a plan, from its site's template or nlaunch's own, and makes what it refers to:
/// the frozen plan, and the folders of Slurm's logs, without which a job ends in silence. Nothing is made
/// where there can be no script. `program` is nlaunch; `arguments` go to its `run`.
Result<JobScript> make_job_script(const plan::Plan& plan, const std::filesystem::path& runs,
                                  const std::string& program, const std::vector<std::string>& arguments);

/// Writes the batch script for the jobs that bring nodes of an elastic pool to a run, and makes the folders
/// of their logs. Its argument is the index of a node in the plan.
Result<std::filesystem::path> make_borrowing_script(const plan::Plan& plan, const plan::SlurmComponent& pool,
                                                    const RunPaths& paths, const std::string& program);
/// Where the agent of such a job writes, unless the pool's directives say otherwise. `job`: its id, or "%j".
std::filesystem::path borrowing_log(const RunPaths& paths, const std::string& job);

}  // namespace nlaunch::launch
