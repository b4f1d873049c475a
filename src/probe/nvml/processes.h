#pragma once
#include <nlohmann/json_fwd.hpp>

#include "probe/nvml/session.h"

namespace nlaunch::probe {

/// Adds who uses a GPU: memory {total, used (bytes, without what the driver keeps for itself where NVML can
/// tell)}, processes [{pid (of the host's pid namespace), kind ("compute", "graphics", "mps"), memory
/// (bytes), and where /proc shows the process: command, user, mine (bool: of this user)}]. A process that
/// descends from the nlaunch that asks is left out.
void add_processes(nlohmann::json& gpu, const nvml::Session& nvml, nvml::Device device);

}  // namespace nlaunch::probe
