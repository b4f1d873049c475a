#pragma once
#include <nlohmann/json_fwd.hpp>

#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// What the experiment asks to be watched, with defaults for what it does not say.
Watch make_watch(const config::Watch& watch);

nlohmann::ordered_json to_json(const Watch& watch);
/// What does not fit is an exception.
Watch watch_from_json(const nlohmann::json& from);

}  // namespace nlaunch::plan
