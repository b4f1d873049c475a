#pragma once
#include <string>

#include "preflight/preflight.h"
#include "report/table.h"

namespace nlaunch::report {

/// "pass" in green, "fail" in red.
std::string status_text(preflight::Status status, const Paint& paint);

/// One row as a line that can be printed while the checks run.
std::string row_line(const preflight::Row& row, const Paint& paint);

/// The end of it: the verdict with its reasons. Rows that failed come with what to do.
std::string preflight_text(const preflight::Report& report, const Paint& paint);

/// All rows and measurements as a table.
std::string preflight_table(const preflight::Report& report, const Paint& paint);

}  // namespace nlaunch::report
