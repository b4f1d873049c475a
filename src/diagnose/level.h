#pragma once
#include <cstdint>
#include <string_view>

namespace nlaunch::diagnose {

/// How severe its logger considers a line.
enum class Level : std::uint8_t { unsaid, info, warning, error };

/// The level at the start of a message, in the formats of Python's logging, vLLM, transformers, DeepSpeed,
/// loguru, glog (PyTorch, Ray), uvicorn and Python's warnings; `unsaid` if there is none. NCCL's own words
/// are not levels: its WARN is an error.
Level level_of(std::string_view before);

}  // namespace nlaunch::diagnose
