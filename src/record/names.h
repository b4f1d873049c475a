#pragma once
#include "record/redactor.h"
#include "record/run_files.h"

namespace nlaunch::record {

/// Adds the names in the run's files to the redactor: hosts, users, home directories, accounts. `environment`
/// is that of the caller.
void collect_names(const RunFiles& run, const std::vector<std::string>& environment, Redactor& redactor);

}  // namespace nlaunch::record
