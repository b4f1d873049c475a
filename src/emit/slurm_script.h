#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "emit/template.h"
#include "plan/plan.h"

namespace nlaunch::emit {

/// What a job's script says that is not in its plan. All paths are absolute.
struct SlurmJob {
  std::string nlaunch;                 ///< this program
  std::string plan_file;               ///< the saved plan
  std::string output;                  ///< Slurm's own log, with its patterns (%j); the plan's directive wins
  std::vector<std::string> arguments;  ///< of `nlaunch run`, behind the plan
};

/// A path as Slurm takes it where it looks for patterns: % doubled.
std::string slurm_path(std::string_view path);

/// The batch script of a plan, from a template of `read_slurm_template`. The same arguments give the same
/// bytes. What sbatch could not be told, or would take for something else, is a failure that says so.
Result<std::string> slurm_script(const plan::Plan& plan, const SlurmJob& job, const Template& from);

}  // namespace nlaunch::emit
