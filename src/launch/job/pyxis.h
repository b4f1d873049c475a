#pragma once
#include <string>
#include <vector>

#include "launch/install.h"
#include "plan/plan.h"

/// Slurm containers with the plug-in pyxis: the step of the agents, and so everything that nlaunch does on a
/// node, runs in the image that `scheduler: {srun: [--container-image=...]}` names.
namespace nlaunch::launch {

/// The srun options that nlaunch adds: mounts for nlaunch itself, the run directory, and the roles' working
/// directories and virtual environments that exist here, each under its own path (README.md of NVIDIA/pyxis
/// at 1075199, --container-mounts). Empty if the step has no container.
std::vector<std::string> pyxis_options(const plan::Plan& plan, const Install& install,
                                       const std::string& run_folder);

}  // namespace nlaunch::launch
