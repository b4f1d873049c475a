#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "emit/template.h"
#include "plan/plan.h"

namespace nlaunch::emit {

/// What a job's script contains that is not in its plan. All paths are absolute.
struct SlurmJob {
  std::string nlaunch;                 ///< this program
  std::string plan_file;               ///< the saved plan
  std::string output;                  ///< Slurm's log, with its patterns (%j); the plan's directive wins
  std::vector<std::string> arguments;  ///< of `nlaunch run`, after the plan
};

/// Escapes a path for Slurm options that expand patterns: % is doubled.
std::string slurm_path(std::string_view path);

/// The batch script of a plan, from a template of `read_slurm_template`. The same arguments give the same
/// bytes. Anything that sbatch cannot represent or would misread is a failure that says so.
Result<std::string> slurm_script(const plan::Plan& plan, const SlurmJob& job, const Template& from);

/// What the script for borrowed nodes contains that is not in their plan. All paths are absolute.
struct BorrowingJob {
  std::string nlaunch;    ///< this program
  std::string plan_file;  ///< the saved plan
  std::string step_file;  ///< where its agents find their leader
  std::string output;     ///< the job's log, with Slurm's patterns; the pool's directive wins
};

/// The batch script of a job that adds one node of an elastic pool, whose directives are in `pool`. Its
/// argument is the node's index in the plan. Otherwise like `slurm_script`.
Result<std::string> borrowing_script(const plan::Plan& plan, const plan::SlurmComponent& pool,
                                     const BorrowingJob& job, const Template& from);

}  // namespace nlaunch::emit
