#pragma once
#include <string>

#include "base/units.h"
#include "cli/context.h"
#include "cli/load.h"

namespace nlaunch::cli {

/// The checks of `nlaunch preflight --node`, their report to standard output as JSON. It ends by itself about
/// `time` after it began, and may hang with what hangs on the machine.
int check_this_machine(const PlanArgs& args, const std::string& level, Duration time, const Context& context);

}  // namespace nlaunch::cli
