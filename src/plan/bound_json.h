#pragma once
#include <nlohmann/json_fwd.hpp>

#include "plan/bound.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The content of `bound.HOST.json`: secrets by name only, values that look like secrets are masked.
nlohmann::ordered_json to_json(const Plan& plan, const BoundNode& node);

}  // namespace nlaunch::plan
