#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// Turns a recording into roles with their start order. Sets parts, roles, start, gpus and became; texts
/// still have the simulated job's hosts, see markers.h. `parted`: the allocation with a component for each
/// pool of `out`.
void import_roles(const lint::Script& script, const shell::Recording& recording,
                  const shell::Allocation& allocation, const shell::Allocation& parted, Imported& out);

}  // namespace nlaunch::import
