#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// What the experiment asks to be watched, with defaults for what it does not say.
Watch make_watch(const config::Watch& watch);

}  // namespace nlaunch::plan
