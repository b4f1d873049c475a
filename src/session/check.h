#pragma once
#include "session/attempt_host.h"
#include "session/caller.h"

namespace nlaunch::session {

/// AttemptHost::check with a progress line on the terminal.
preflight::Report check(AttemptHost& host, preflight::Options options, const Caller& caller);

}  // namespace nlaunch::session
