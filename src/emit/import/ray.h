#pragma once
#include "emit/import/commands.h"
#include "emit/import/import.h"

/// Ray's processes as roles, as configs/grpo-ray.yaml has them.
namespace nlaunch::emit {

bool is_ray_head(const Launch& launch);
ImportedRole ray_head_role(const Launch& launch);
/// Ready once all of Ray has so many GPUs.
ImportedRole ray_worker_role(const Launch& launch, std::uint32_t gpus);
/// What Ray starts for a trainer, as far as its arguments say how many; else all GPUs are learners.
std::vector<ImportedRole> ray_actors(const Launch& trainer, std::uint32_t nodes, std::uint32_t gpus);

}  // namespace nlaunch::emit
