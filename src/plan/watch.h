#pragma once
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The `watch` settings of the experiment, with defaults for those that are not set.
Watch make_watch(const config::Watch& watch);

}  // namespace nlaunch::plan
