#pragma once
#include <optional>
#include <span>
#include <string>

#include "config/names.h"
#include "config/reader.h"

namespace nlaunch::config {

/// What an `env:` can contain.
enum class EnvForm {
  block,          ///< set, unset, prepend, append, when: a site profile, an overlay
  plain_or_block  ///< or just NAME: VALUE, null for unset: an experiment, a role
};

/// Only `NAME: VALUE`, without set, unset and so on.
bool is_plain_env(const Node& env);

/// Reads an `env:`. `libraries` are the names that a `when` can use; without a list, any name is accepted (an
/// experiment is read before its site is known).
EnvBlock read_env(const Value& value, EnvForm form, const std::vector<std::string>* libraries,
                  ProcessTraits of = {});

/// Reads `overlays:`.
std::vector<Overlay> read_overlays(const Value& value, const std::vector<std::string>* libraries);

/// Letters, digits and _, not starting with a digit.
bool is_variable_name(std::string_view name);
/// Reports a name that is not a valid variable name.
bool check_variable_name(const Text& name, Problems& problems);

}  // namespace nlaunch::config
