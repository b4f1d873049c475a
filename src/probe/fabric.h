#pragma once
#include <nlohmann/json.hpp>

namespace nlaunch::probe {

/// The libfabric that the loader takes in this environment: event "fabric"; version, path, or error.
/// Apart from the facts of the machine: one that brings CUDA along takes 0.2 s to load.
nlohmann::json examine_fabric();

}  // namespace nlaunch::probe
