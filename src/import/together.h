#pragma once
#include <vector>

#include "import/check.h"

namespace nlaunch::import {

/// What one process alone does not show: which programs have ended when others begin, how many GPUs each
/// sees where the script says it, and who meets at one address.
std::vector<Difference> differences_together(const Imported& imported, const shell::Recording& recording,
                                             const plan::Plan& plan);

}  // namespace nlaunch::import
