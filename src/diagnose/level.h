#pragma once
#include <cstdint>
#include <string_view>

namespace nlaunch::diagnose {

/// How serious its logger calls a line.
enum class Level : std::uint8_t { unsaid, info, warning, error };

/// The level that stands before a message, in the forms of Python's logging, vLLM, transformers, DeepSpeed,
/// loguru, glog (PyTorch, Ray), uvicorn and Python's warnings; `unsaid` where there is none. NCCL's own words
/// are not levels: its WARN is an error.
Level level_of(std::string_view before);

}  // namespace nlaunch::diagnose
