#pragma once
#include <cstddef>
#include <string>

#include "config/experiment.h"

/// What nlaunch knows of vLLM.
namespace nlaunch::plan {

/// Its command starts a vLLM server: the program `vllm`, `trl vllm-serve`, or the module vllm.entrypoints,
/// also behind a launcher such as `uv run`.
bool runs_vllm(const config::Role& role);

/// Where it puts its sockets, each named by a UUID.
inline constexpr const char* kVllmSockets = "VLLM_RPC_BASE_PATH";
/// Whether their paths, of 107 bytes at most, can be in this folder.
bool holds_vllm_sockets(const std::string& folder);

}  // namespace nlaunch::plan
