#pragma once
#include "import/commands.h"
#include "import/import.h"

namespace nlaunch::import {

/// What the script asks until it answers becomes `ready` of the role that has this port. The roles are there.
void import_readiness(const Doings& doings, Imported& out);

}  // namespace nlaunch::import
