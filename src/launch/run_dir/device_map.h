#pragma once
#include <nlohmann/json_fwd.hpp>

#include "plan/plan.h"

namespace nlaunch::launch {

/// Which process has which devices, as bound: for each {"process", "host", "rank", "local_rank",
/// "CUDA_VISIBLE_DEVICES", "devices": [{"bus_id", "uuid"}]}. Read from the bound.HOST.json files of
/// `attempt`; a node whose file cannot be read is left out. Empty if the plan has no GPUs.
nlohmann::ordered_json device_map(const plan::Plan& plan, const std::string& attempt);

}  // namespace nlaunch::launch
