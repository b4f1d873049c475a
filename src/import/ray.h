#pragma once
#include "import/commands.h"
#include "import/import.h"

/// Ray's processes as roles, as configs/grpo-ray.yaml has them.
namespace nlaunch::import {

/// `ray job submit OPTION... -- PROGRAM`: its environment is that of all of Ray's processes here.
struct RayJobOptions {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> remarks;  ///< on what is left out
};
RayJobOptions ray_job_options(const Launch& launch);

bool is_ray_head(const Launch& launch);
ImportedRole ray_head_role(const Launch& launch, bool gpus);
/// Ready once all of Ray has so many GPUs.
ImportedRole ray_worker_role(const Launch& launch, std::uint32_t gpus);
/// What Ray starts for a trainer, as far as its arguments say how many; else all GPUs are learners.
std::vector<ImportedRole> ray_actors(const Launch& trainer, std::uint32_t nodes, std::uint32_t gpus);

}  // namespace nlaunch::import
