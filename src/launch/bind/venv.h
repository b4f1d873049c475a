#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// The virtual environments that do not exist on this machine, one error each with the roles, the path and
/// where it was set. For the roles on `node`, else for all. A path that only a node can resolve is left to
/// the check of the program; one in a container may belong to the image.
Diagnostics missing_venvs(const plan::Plan& plan, std::optional<std::uint32_t> node = {});

/// The version of a Python, without starting it: from the pyvenv.cfg of its virtual environment, else from
/// its name ("python3.11"). Empty: not known.
std::string version_of_python(const std::string& path);

}  // namespace nlaunch::launch
