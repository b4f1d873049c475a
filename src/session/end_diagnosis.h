#pragma once
#include "launch/run_dir/run_folder.h"
#include "report/table.h"
#include "supervise/outcome.h"

namespace nlaunch::session {

/// Why an attempt failed, or what its good end hides, from its logs: the cause in a few lines for the
/// terminal, the whole in the attempt's diagnosis.json. Empty, and nothing written, where somebody ended it
/// or where nothing is found. It takes a few seconds at most: of logs that are larger it says what it has
/// read.
std::string diagnose_end(const launch::RunPaths& paths, const supervise::Outcome& outcome,
                         const report::Paint& paint);

}  // namespace nlaunch::session
