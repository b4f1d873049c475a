#pragma once
#include <map>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The libnccl that the process's program would load, and its version: its preload; else VLLM_NCCL_SO_PATH;
/// else the NCCL wheel of its Python; else what the loader finds. Runs `probe`, and if needed that Python
/// (without its sitecustomize, which might import torch).
LibraryFact find_role_library(const plan::BoundProcess& process, const std::string& probe);

/// The Python that runs a process's command: the command itself, its script's interpreter, or the first on
/// PATH.
RolePython python_of(const plan::BoundProcess& process);

/// For each role on the node: learners and engines of an experiment are assumed to use one in any case, other
/// roles only if the command indicates it.
std::map<std::uint32_t, RolePython> pythons_of_roles(const NodeObservations& observations);

}  // namespace nlaunch::preflight
