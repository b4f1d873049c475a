#pragma once
#include "record/redactor.h"
#include "record/run_files.h"

namespace nlaunch::record {

/// Tells the redactor whom and what the run's files name: hosts, users, home folders, accounts. `environment`
/// is that of who asks.
void collect_names(const RunFiles& run, const std::vector<std::string>& environment, Redactor& redactor);

}  // namespace nlaunch::record
