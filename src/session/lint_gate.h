#pragma once
#include "launch/install.h"
#include "plan/plan.h"
#include "session/caller.h"

namespace nlaunch::session {

/// Looks at a plan before it is used for `command` ("nlaunch run"): prints errors and warnings, and says
/// whether to stop. `skip` (--no-lint) does not look, and says so.
bool lint_stops(const plan::Plan& plan, const launch::Install& install, bool skip, std::string_view command,
                const Caller& caller);

}  // namespace nlaunch::session
