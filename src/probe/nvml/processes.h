#pragma once
#include <nlohmann/json_fwd.hpp>

#include "probe/nvml/session.h"

namespace nlaunch::probe {

/// Adds the users of a GPU: memory {total, used (bytes, without the driver's own share if NVML reports it)},
/// processes [{pid (in the host's pid namespace), kind ("compute", "graphics", "mps"), memory (bytes), and if
/// /proc shows the process: command, user, mine (bool: of this user)}]. A process that descends from the
/// calling nlaunch is left out.
void add_processes(nlohmann::json& gpu, const nvml::Session& nvml, nvml::Device device);

}  // namespace nlaunch::probe
