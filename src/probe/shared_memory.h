#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// `shared-memory`: what NCCL, PyTorch and PSM have in a folder of shared memory:
///   event "shared-memory"; folder; files [{name, bytes, age (seconds), user, mine (bool: of this user),
///   used}], by name. `used`: true where a process maps it or may (its owner has a process that cannot be
///   looked into), false where none does, null where that cannot be seen from here (a container, hidden
///   processes).
nlohmann::json examine_shared_memory(const std::string& folder);

}  // namespace nlaunch::probe
