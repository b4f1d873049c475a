#pragma once
#include <string>

#include "base/units.h"
#include "cli/console.h"
#include "cli/load.h"

namespace nlaunch::commands {

/// The checks of `nlaunch preflight --node`; prints the report as JSON to standard output. Stops by itself
/// after about `time`, but may hang if something on the machine hangs.
int check_this_machine(const cli::PlanArgs& args, const std::string& level, Duration time,
                       const cli::Context& context);

}  // namespace nlaunch::commands
