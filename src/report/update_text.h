#pragma once
#include <string>

#include "plan/update.h"
#include "report/table.h"

namespace nlaunch::report {

/// What an update changes, for who is to agree to it: one role after the other; what was is marked with a
/// minus, what will be with a plus. Empty where nothing changes.
std::string update_text(const plan::Update& update, const Paint& paint);

}  // namespace nlaunch::report
