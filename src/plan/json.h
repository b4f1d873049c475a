#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The whole plan. Values of variables whose names look like secrets are omitted ("masked": true).
nlohmann::ordered_json to_json(const Plan& plan);

/// Reads a plan from text that `to_json` wrote. Damaged or other text is a failure that gives the position.
/// `name` is the name of the text in messages.
Result<Plan> from_json(const std::string& text, const std::string& name);

}  // namespace nlaunch::plan
