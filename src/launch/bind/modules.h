#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/environment.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// The script that defines `module` in bash, by $MODULESHOME or in the usual places; empty where there is
/// none.
std::string find_modules_init(const plan::Environment& base);

/// Sources the plan's shell files, and loads its environment modules (Lmod or environment-modules), in a bash
/// of their own that starts with `base`, and returns what they changed, each change with the file or module
/// that made it. One that does not load is a failure with the tool's own words.
Result<std::vector<plan::EnvOp>> load_modules(const plan::Modules& modules, const plan::Environment& base);

}  // namespace nlaunch::launch
