#pragma once
#include <vector>

#include "import/check.h"

namespace nlaunch::import {

/// Differences that a single process does not show: which programs have exited when others start, how many
/// GPUs each sees if the script sets it, and which ones share a rendezvous address.
std::vector<Difference> differences_together(const Imported& imported, const shell::Recording& recording,
                                             const plan::Plan& plan);

}  // namespace nlaunch::import
