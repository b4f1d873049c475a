#pragma once
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The libnccl that the process's program would load, and its version: its preload; else VLLM_NCCL_SO_PATH;
/// else the NCCL wheel of its Python; else what the loader finds. Runs `probe`, and perhaps that Python
/// (without its sitecustomize, which might import torch).
LibraryFact find_role_library(const plan::BoundProcess& process, const std::string& probe);

}  // namespace nlaunch::preflight
