#pragma once
#include "config/yaml.h"

namespace nlaunch::config {

/// Writes the value of a setting into the tree, replacing the existing value. Missing maps on the path are
/// created.
void apply_setting(Node& root, const Setting& setting, Problems& problems);

}  // namespace nlaunch::config
