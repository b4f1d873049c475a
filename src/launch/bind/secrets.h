#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// The values of the secrets by variable, read from where the plan says. A missing one is a failure that
/// names the place, never a value.
Result<std::map<std::string, std::string>> read_secrets(const std::vector<plan::Secret>& secrets,
                                                        const std::map<std::string, std::string>& caller);

}  // namespace nlaunch::launch
