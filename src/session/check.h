#pragma once
#include "session/attempt_host.h"
#include "session/caller.h"

namespace nlaunch::session {

/// The job of this process, under any scheduler; empty: none.
std::string job_of(const std::vector<std::string>& environment);

/// AttemptHost::check with a progress line on the terminal; the report names the job.
preflight::Report check(AttemptHost& host, preflight::Options options, const Caller& caller);

}  // namespace nlaunch::session
