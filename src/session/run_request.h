#pragma once
#include <string>

#include "session/caller.h"
#include "supervise/requests.h"

namespace nlaunch::session {

/// Sends a request to a running run and prints its reply. Returns the exit code.
int ask_run(const std::string& runs_dir, const std::string& run, const supervise::RunRequest& request,
            const Caller& caller);

}  // namespace nlaunch::session
