#pragma once
#include <string>
#include <vector>

#include "record/run_files.h"
#include "record/versions.h"

namespace nlaunch::report {

/// The README.txt of a bundle: what ran, where, how it ended, which process failed first and why, with which
/// versions, and where to look. `state`: "running", or the outcome. `diagnosis`: as from `nlaunch diagnose
/// --json`, or null.
std::string run_readme(const record::RunFiles& run, const std::string& state, const record::Json& diagnosis,
                       const std::vector<record::VersionRow>& versions);

}  // namespace nlaunch::report
