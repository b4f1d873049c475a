#pragma once
#include "launch/install.h"
#include "plan/plan.h"
#include "session/caller.h"

namespace nlaunch::session {

/// Lints a plan before `command` ("nlaunch run") uses it: prints errors and warnings, and returns whether to
/// stop. With `skip` (--no-lint) it lints nothing and prints a note.
bool lint_stops(const plan::Plan& plan, const launch::Install& install, bool skip, std::string_view command,
                const Caller& caller);

}  // namespace nlaunch::session
