#pragma once
#include <string>

#include "base/units.h"
#include "cli/console.h"
#include "cli/load.h"

namespace nlaunch::commands {

/// The checks of `nlaunch preflight --node`, their report to standard output as JSON. It ends by itself about
/// `time` after it began, and may hang with what hangs on the machine.
int check_this_machine(const cli::PlanArgs& args, const std::string& level, Duration time,
                       const cli::Context& context);

}  // namespace nlaunch::commands
