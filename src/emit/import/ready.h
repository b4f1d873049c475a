#pragma once
#include "emit/import/commands.h"
#include "emit/import/import.h"

namespace nlaunch::emit {

/// What the script asks until it answers becomes `ready` of the role that has this port. The roles are there.
void import_readiness(const Doings& doings, Imported& out);

}  // namespace nlaunch::emit
