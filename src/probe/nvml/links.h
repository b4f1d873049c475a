#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "probe/nvml/session.h"

namespace nlaunch::probe {

/// The NVLink domain that a GPU shares with those of other nodes, "CLUSTER-UUID.CLIQUE"; empty if its fabric
/// is local to the node, or not up.
std::string nvlink_domain(const nvml::Session& nvml, nvml::Device device);

/// Adds what is known about the links of a GPU to others:
///   links [{link, active, crc, replay, recovery (counts since the driver was loaded)}]: NVLinks that the GPU
///   has; fabric {state, status, status_text, health_mask, summary} (nvml.h's numbers): its registration with
///   the NVSwitch fabric; c2c [{link, active}]: the links to the CPU of a Grace machine.
void add_links(nlohmann::json& gpu, const nvml::Session& nvml, nvml::Device device);

}  // namespace nlaunch::probe
