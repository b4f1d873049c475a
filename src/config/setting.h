#pragma once
#include "config/yaml.h"

namespace nlaunch::config {

/// Puts the value of a setting into the tree, over what stands there. Maps on the way are made.
void apply_setting(Node& root, const Setting& setting, Problems& problems);

}  // namespace nlaunch::config
