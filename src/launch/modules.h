#pragma once
#include <vector>

#include "base/diagnostic.h"
#include "plan/environment.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// Loads environment modules (Lmod or environment-modules) in a bash of their own that starts with `base`,
/// and returns what they changed, each change with the module that made it. A module that does not load is a
/// failure with the tool's own words.
Result<std::vector<plan::EnvOp>> load_modules(const plan::Modules& modules, const plan::Environment& base);

}  // namespace nlaunch::launch
