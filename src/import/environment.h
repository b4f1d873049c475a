#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// The variables, folders and virtual environments of the roles: what all have goes to the experiment, or to
/// the site's profile where it belongs to the machine; the rest to each role. Needs parts and roles. `lines`:
/// of the script.
void import_environment(const shell::Recording& recording, const std::vector<std::string>& lines,
                        Imported& out);

}  // namespace nlaunch::import
