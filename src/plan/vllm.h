#pragma once
#include <cstddef>
#include <string>

#include "config/experiment.h"

/// What nlaunch knows about vLLM.
namespace nlaunch::plan {

/// Whether a command starts a vLLM server: the program `vllm`, `trl vllm-serve`, or the module
/// vllm.entrypoints, also after a launcher such as `uv run`.
bool runs_vllm(const config::Role& role);

/// The directory of its sockets, each named by a UUID.
inline constexpr const char* kVllmSockets = "VLLM_RPC_BASE_PATH";
/// Whether their paths, of at most 107 bytes, fit in this directory.
bool holds_vllm_sockets(const std::string& folder);

}  // namespace nlaunch::plan
