#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// A job for Slurm, ready to be submitted.
struct JobScript {
  std::string text;
  std::filesystem::path plan_file;  ///< the frozen plan that it runs
};

/// Writes the batch script of a plan, from its site's template or nlaunch's own, and makes what it refers to:
/// the plan as RUNS/NAME/plans/HASH.json, so that the same plan gives the same script, and the folders of
/// Slurm's logs, without which a job ends in silence. Nothing is made where there can be no script.
/// `program` is nlaunch; `arguments` go to its `run`.
Result<JobScript> make_job_script(const plan::Plan& plan, const std::filesystem::path& runs,
                                  const std::string& program, const std::vector<std::string>& arguments);

}  // namespace nlaunch::launch
