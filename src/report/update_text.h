#pragma once
#include <string>

#include "plan/update.h"
#include "report/table.h"

namespace nlaunch::report {

/// What an update changes, for the person who confirms it, role by role: the old value with a minus, the new
/// one with a plus. Empty if nothing changes.
std::string update_text(const plan::Update& update, const Paint& paint);

}  // namespace nlaunch::report
