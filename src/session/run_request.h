#pragma once
#include <string>

#include "session/caller.h"
#include "supervise/requests.h"

namespace nlaunch::session {

/// Asks a run that goes on for something, and says what it answered. The exit code.
int ask_run(const std::string& runs_dir, const std::string& run, const supervise::RunRequest& request,
            const Caller& caller);

}  // namespace nlaunch::session
