#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The whole plan. Values of variables whose names look like secrets are omitted ("masked": true).
nlohmann::ordered_json to_json(const Plan& plan);

/// The text of `to_json` with this indentation. In a wide plan, nearly everything is processes and groups:
/// they are written one by one, since the tree of all of them takes ten times the memory of the plan.
std::string to_text(const Plan& plan, int indent = -1);

/// Reads a plan from text that `to_json` wrote. Damaged or other text is a failure that gives the position.
/// `name` is the name of the text in messages.
Result<Plan> from_json(const std::string& text, const std::string& name);

}  // namespace nlaunch::plan
