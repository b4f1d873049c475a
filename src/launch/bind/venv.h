#pragma once
#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// The virtual environments that are not on this machine, an error each: whose, which, and where it was set.
/// Of the roles on `node`, else of all. One that only a node can name is left to the check of the program,
/// and one in a container may be the image's.
Diagnostics missing_venvs(const plan::Plan& plan, std::optional<std::uint32_t> node = {});

}  // namespace nlaunch::launch
