#pragma once
#include <string>
#include <string_view>

namespace nlaunch::config {

/// True for a variable that nlaunch sets itself and nobody else may: LD_PRELOAD, RANK, CUDA_VISIBLE_DEVICES
/// ...
bool is_reserved_variable(std::string_view name);
/// Why, and what to write instead.
std::string reserved_reason(std::string_view name);

}  // namespace nlaunch::config
