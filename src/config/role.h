#pragma once
#include <cstdint>
#include <vector>

#include "config/reader.h"

namespace nlaunch::config {

// More is a slip of the keyboard.
inline constexpr std::uint32_t kMostNodesOfARun = 100'000;
inline constexpr std::uint32_t kMostGpus = 1024;  ///< of a node

/// Reads `roles:`, each role by itself.
std::vector<Role> read_roles(const Value& value);

/// Checks what one role says of another: `except`, `spawned_by`.
void check_role_names(const std::vector<Role>& roles, Problems& problems);

std::vector<std::string> names_of(const std::vector<Role>& roles);
const Role* find_role(const std::vector<Role>& roles, std::string_view name);
/// Reports a name that is no role's; true when it is one.
bool check_role(const std::vector<Role>& roles, const Text& name, Problems& problems);

/// `signal: TERM`
void read_signal(Keys& keys, int& target);
/// `{policy: on-failure, max: 3, within: 1h, backoff: {from: 5s, to: 5m}}`
Restart read_restart(const Value& value);
/// A command's first word starts Python: python, /opt/bin/python3.12.
bool is_python(std::string_view program);

/// Reports what cannot be the name of a role, a port, a pool: [a-z][a-z0-9_-]*, for it becomes part of file
/// names, host lists and references. `what`: "a role".
void check_simple_name(const Text& name, std::string_view what, Problems& problems);

/// Reports what is no regular expression (of RE2); true when it is one.
bool check_regex(const Text& pattern, Problems& problems);
/// Of one whose first group is to be a number: reports one without a group, too.
void check_number_regex(const Text& pattern, Problems& problems,
                        std::string_view example = "'took ([\\d.]+)s'");
/// Likewise of one whose first group is to be a path.
void check_path_regex(const Text& pattern, Problems& problems);

}  // namespace nlaunch::config
