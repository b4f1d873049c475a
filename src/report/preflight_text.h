#pragma once
#include <string>

#include "preflight/preflight.h"
#include "report/table.h"

namespace nlaunch::report {

/// The end of the output: the verdict with its reasons. Rows that failed include their fix.
std::string preflight_text(const preflight::Report& report, const Paint& paint);

/// The verdict in one line of at most 200 bytes, for a log or as Slurm's reason: "fail limits open files: 200
/// (expected 4096 and more), and 2 more". Empty if there is nothing to report.
std::string preflight_reason(const preflight::Report& report);

/// All rows and measurements as a table.
std::string preflight_table(const preflight::Report& report, const Paint& paint);

}  // namespace nlaunch::report
