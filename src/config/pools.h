#pragma once
#include <string_view>
#include <vector>

#include "config/reader.h"
#include "config/role.h"

namespace nlaunch::config {

/// Reads `pools:` of an experiment, or of a profile, which describes the nodes but not their number. Elastic
/// ones come last.
std::vector<Pool> read_pools(const Value& value, bool in_profile);

/// The pool with that name; nullptr if there is none.
const Pool* find_pool(const std::vector<Pool>& pools, std::string_view name);

/// The first elastic pool that a role names; nullptr if it names none.
const Text* elastic_pool_of(const Role& role, const std::vector<Pool>& pools);

/// Checks the pools that roles name.
void check_pool_names(const std::vector<Role>& roles, const std::vector<Pool>& pools, Problems& problems);

}  // namespace nlaunch::config
