#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/environment.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// The script that defines `module` in bash, from $MODULESHOME or the usual places; empty if there is none.
std::string find_modules_init(const plan::Environment& base);

/// Sources the plan's shell files and loads its environment modules (Lmod or environment-modules) in a
/// separate bash that starts with `base`, and returns the changes, each with the file or module that made it.
/// A module that does not load is a failure with the tool's own message.
Result<std::vector<plan::EnvOp>> load_modules(const plan::Modules& modules, const plan::Environment& base);

}  // namespace nlaunch::launch
