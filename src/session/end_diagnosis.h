#pragma once
#include <cstddef>

#include "launch/run_dir/run_folder.h"
#include "report/table.h"
#include "supervise/outcome.h"

namespace nlaunch::session {

/// Of a larger run that finished, nothing is read back: that would take more memory than leading it.
inline constexpr std::size_t kMostProcessesRead = 4096;

/// Diagnoses from its logs why an attempt failed, or what a successful end hides: returns the cause in a few
/// lines for the terminal, and writes all of it to diagnosis.json of the attempt. Returns an empty string,
/// and writes nothing, if somebody stopped the attempt or nothing is found. Takes a few seconds at most; for
/// larger logs it reports how much it has read.
std::string diagnose_end(const launch::RunPaths& paths, const supervise::Outcome& outcome,
                         const report::Paint& paint);

}  // namespace nlaunch::session
