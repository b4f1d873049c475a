#pragma once
#include <vector>

#include "diagnose/collector.h"

namespace nlaunch::diagnose {

/// What was found, best first: what explains most before what explains less, of equals the earliest. The
/// first that is no note is the cause.
std::vector<Finding> ranked(const Collector& collected);

}  // namespace nlaunch::diagnose
