#pragma once
#include <string>

namespace nlaunch::probe {

/// `gpu-use FILE [SECONDS]`: how busy the GPUs are, until it is killed. Every SECONDS (5) it appends a line
/// to FILE:
///   at (Unix time, seconds), gpus [{bus_id, busy (percent of the last sampling period of NVML in which a
///   kernel ran; a kernel that waits for another rank counts), power (watts), power_limit (watts)}]
/// What this NVML or this GPU does not give is absent. Ends with 1 where there is nothing to be sampled: the
/// file then has one line, error.
int sample_gpu_use(const std::string& file, double seconds);

}  // namespace nlaunch::probe
