#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The whole plan. Values of variables whose names look like secrets are left out ("masked": true).
nlohmann::ordered_json to_json(const Plan& plan);

/// The plan in a text made from `to_json`. A damaged or foreign text is a failure that says where.
/// `name` is what the text is called in messages.
Result<Plan> from_json(const std::string& text, const std::string& name);

}  // namespace nlaunch::plan
