#pragma once
#include "cli/context.h"
#include "launch/install.h"
#include "plan/plan.h"

namespace nlaunch::cli {

/// Looks at a plan before it is used for `command` ("nlaunch run"): prints errors and warnings, and says
/// whether to stop. `skip` (--no-lint) does not look, and says so.
bool lint_stops(const plan::Plan& plan, const launch::Install& install, bool skip, std::string_view command,
                const Context& context);

}  // namespace nlaunch::cli
