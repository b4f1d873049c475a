#pragma once
#include <string>
#include <vector>

#include "import/commands.h"

namespace nlaunch::import {

/// The command of a role, from a launch's words. What only a shell knows makes it a `bash -c`. `head`: the
/// reference that stands for the first node's address; empty: MASTER_ADDR.
std::vector<std::string> command_line(const std::vector<Value>& words, const std::string& head);

/// The variables that a shell would look up for an expansion.
std::vector<std::string> variables_in(const std::string& written);

/// A value for an environment; nothing where only a shell knows it.
std::optional<std::string> plain_text(const Value& value, const std::string& head);

}  // namespace nlaunch::import
