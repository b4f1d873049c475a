#pragma once
#include <string>

#include "cli/load.h"

namespace nlaunch::commands {

/// `nlaunch bench --drill`: shows what failures look like on this machine or allocation.
struct DrillArgs {
  std::string which;  ///< name of a drill, or "all"
  bool json = false;
  std::string runs_dir = "runs";
};

/// `which` stays empty if no drill is requested.
void add_drill_option(cli::Command command, std::string& which);

/// Runs the drills over the largest group of the plan or, without an experiment, over all GPUs of the
/// allocation or the machine. Each arm uses fresh probes that exit when the arm is over. Prints what each
/// drill showed. A drill has no verdict: the exit code is preflight_unknown only if no drill could start.
int run_drills(const DrillArgs& args, const cli::PlanArgs& plan, const cli::Context& context);

}  // namespace nlaunch::commands
