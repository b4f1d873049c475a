#pragma once
#include <string>
#include <vector>

#include "preflight/groups/drills.h"
#include "report/table.h"

namespace nlaunch::report {

/// One drill after the other: what was done, what each rank showed, and how it ended.
std::string drill_text(const std::string& group, std::size_t ranks,
                       const std::vector<preflight::DrillRow>& rows, const Paint& paint);

}  // namespace nlaunch::report
