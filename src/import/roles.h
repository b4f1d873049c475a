#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// What is recorded of a script, as roles with the order in which they start. Sets parts, roles, start, gpus
/// and became; texts still have the made-up job's hosts, see markers.h.
void import_roles(const shell::Recording& recording, const shell::Allocation& allocation, Imported& out);

}  // namespace nlaunch::import
