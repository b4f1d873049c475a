#pragma once
#include <string>

#include "cli/load.h"

namespace nlaunch::commands {

/// `nlaunch bench --drill`: shows what failures look like here.
struct DrillArgs {
  std::string which;  ///< a drill's name, or "all"
  bool json = false;
  std::string runs_dir = "runs";
};

/// `which` stays empty where no drill is asked for.
void add_drill_option(cli::Command command, std::string& which);

/// Runs the drills over the largest group of the plan, or, without an experiment, over all GPUs of the
/// allocation or the machine, each arm in fresh probes that are gone when it is over. Prints what each
/// showed. A drill has no verdict: the exit code is that of a preflight that could not be made only where
/// none of them could begin.
int run_drills(const DrillArgs& args, const cli::PlanArgs& plan, const cli::Context& context);

}  // namespace nlaunch::commands
