#pragma once
#include "cli/console.h"
#include "commands/run_submit.h"
#include "plan/plan.h"

namespace nlaunch::commands {

/// Submits through Beaker's own program, and leaves the spec in a run directory. Without the program it says
/// what to type where there is one; the exit code is then that for wrong usage. Nothing is followed: Beaker
/// has the logs.
int submit_beaker(const plan::Plan& plan, const SubmitOptions& options, const cli::Context& context);

}  // namespace nlaunch::commands
