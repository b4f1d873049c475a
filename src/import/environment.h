#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// The variables, directories and virtual environments of the roles: what all have in common goes to the
/// experiment, or to the site profile if it belongs to the machine; the rest goes to each role. Needs parts
/// and roles. `lines`: of the script; `secrets`: what it assigns to variables whose names mean one.
void import_environment(const shell::Recording& recording, const std::vector<std::string>& lines,
                        const std::vector<HandedOver>& secrets, Imported& out);

}  // namespace nlaunch::import
