#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "probe/nvml/session.h"

namespace nlaunch::probe {

/// The NVLink domain that a GPU shares with those of other nodes, "CLUSTER-UUID.CLIQUE"; empty where its
/// fabric is the node's own, or not up.
std::string nvlink_domain(const nvml::Session& nvml, nvml::Device device);

/// Adds what is known of how a GPU is joined to others:
///   links [{link, active, crc, replay, recovery (counts since the driver was loaded)}]: NVLinks that the GPU
///   has; fabric {state, status, status_text, health_mask, summary} (nvml.h's numbers): its registration with
///   the NVSwitch fabric; c2c [{link, active}]: the links to the CPU of a Grace machine.
void add_links(nlohmann::json& gpu, const nvml::Session& nvml, nvml::Device device);

}  // namespace nlaunch::probe
