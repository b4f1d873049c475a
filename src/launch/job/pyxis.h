#pragma once
#include <string>
#include <vector>

#include "launch/install.h"
#include "plan/plan.h"

/// Slurm's containers by the plug-in pyxis: the step of the agents, and so all that nlaunch does on a node,
/// is in the image that `scheduler: {srun: [--container-image=...]}` names.
namespace nlaunch::launch {

/// The options of srun that nlaunch adds: nlaunch itself, the run directory, and the working folders and
/// virtual environments of the roles as far as they are here, each mounted under its own path (README.md of
/// NVIDIA/pyxis at 1075199, --container-mounts). Empty where the step has no container.
std::vector<std::string> pyxis_options(const plan::Plan& plan, const Install& install,
                                       const std::string& run_folder);

}  // namespace nlaunch::launch
