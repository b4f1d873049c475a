#pragma once
#include <string_view>
#include <vector>

#include "config/reader.h"
#include "config/role.h"

namespace nlaunch::config {

/// Reads `pools:`, of an experiment, or of a profile, which knows what they are like and not how many nodes
/// are wanted. Elastic ones come last.
std::vector<Pool> read_pools(const Value& value, bool in_profile);

/// The one of that name; nullptr where there is none.
const Pool* find_pool(const std::vector<Pool>& pools, std::string_view name);

/// The first pool that a role names which is elastic; nullptr: it names none.
const Text* elastic_pool_of(const Role& role, const std::vector<Pool>& pools);

/// Checks the pools that roles name.
void check_pool_names(const std::vector<Role>& roles, const std::vector<Pool>& pools, Problems& problems);

}  // namespace nlaunch::config
