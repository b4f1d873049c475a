#pragma once
#include "import/commands.h"
#include "import/import.h"

namespace nlaunch::import {

/// What the script exports, to the profile, the experiment, a role or the secrets, by whose variable it is.
/// The roles and libraries are there.
void import_environment(const Doings& doings, Imported& out);

/// X=/a:$X and X=$X:/a of a list of folders: true where it was such a one.
bool import_joined(const std::string& name, const std::string& text, std::uint32_t line,
                   ImportedEnvironment& environment);

/// The last step: lines of the script into the remarks, the variables that are used, and no secret anywhere.
void finish(const Doings& doings, Imported& out);

}  // namespace nlaunch::import
