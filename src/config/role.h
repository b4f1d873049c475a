#pragma once
#include <cstdint>
#include <vector>

#include "config/reader.h"

namespace nlaunch::config {

// More is probably a typo.
inline constexpr std::uint32_t kMostNodesOfARun = 100'000;
inline constexpr std::uint32_t kMostGpus = 1024;  ///< of a node
inline constexpr std::size_t kMostRoles = 256;

/// Reads `roles:`, each role separately.
std::vector<Role> read_roles(const Value& value);

/// Checks references between roles: `except`, `spawned_by`.
void check_role_names(const std::vector<Role>& roles, Problems& problems);

std::vector<std::string> names_of(const std::vector<Role>& roles);
const Role* find_role(const std::vector<Role>& roles, std::string_view name);
/// Reports an unknown role name; true if the role exists.
bool check_role(const std::vector<Role>& roles, const Text& name, Problems& problems);

/// `signal: TERM`
void read_signal(Keys& keys, int& target);
/// `{policy: on-failure, max: 3, within: 1h, backoff: {from: 5s, to: 5m}}`
Restart read_restart(const Value& value);
/// True if a command's first word starts Python: python, /opt/bin/python3.12.
bool is_python(std::string_view program);

/// Reports a name that is not valid for a role, a port or a pool: [a-z][a-z0-9_-]*, because it becomes part
/// of file names, host lists and references. `what`: "a role".
void check_simple_name(const Text& name, std::string_view what, Problems& problems);

/// Reports a string that is not a regular expression (RE2); true if it is one.
bool check_regex(const Text& pattern, Problems& problems);
/// For a pattern whose first group is a number: also reports a missing group.
void check_number_regex(const Text& pattern, Problems& problems,
                        std::string_view example = "'took ([\\d.]+)s'");
/// The same for a pattern whose first group is a path.
void check_path_regex(const Text& pattern, Problems& problems);

}  // namespace nlaunch::config
