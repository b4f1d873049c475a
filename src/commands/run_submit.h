#pragma once
#include <string>
#include <vector>

#include "cli/console.h"
#include "plan/plan.h"

namespace nlaunch::commands {

struct SubmitOptions {
  std::string runs_dir = "runs";
  bool detach = false;                 ///< do not follow
  std::vector<std::string> arguments;  ///< of `nlaunch run`, for the job
};

/// From the login node: makes the run directory, submits the job that will use it, and follows it to its end.
/// Ctrl-C ends the following alone. The exit code of the run, or 0 where it is not followed to the end.
int submit(const plan::Plan& plan, const SubmitOptions& options, const cli::Context& context);

}  // namespace nlaunch::commands
