#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// A GPU as the driver's management library sees it, independent of CUDA_VISIBLE_DEVICES.
struct NvmlGpu {
  unsigned index = 0;  ///< in order of bus ids
  std::string bus_id;  ///< with the whole PCI domain: "00000000:3B:00.0"
  std::string uuid;    ///< "GPU-..."
  std::string name;
  std::string domain;              ///< of NVLink, across nodes: see links.h
  std::uint64_t memory_total = 0;  ///< bytes
  std::uint64_t memory_used = 0;
};

struct NvmlFacts {
  std::string driver;       ///< "580.95.05"
  std::string cuda_driver;  ///< "13.0"
  std::vector<NvmlGpu> gpus;
  std::vector<std::string> errors;  ///< GPUs that could not be queried, and why
};

/// Queries NVML without creating a CUDA context. The error says which library was searched for, and where.
Result<NvmlFacts> ask_nvml();

/// A bus id with its whole PCI domain and in capitals, however it was written: "00000009:01:00.0". GPUs of
/// one machine can differ only in the domain. Empty for a text that is not a bus id.
std::string full_bus_id(const std::string& text);

}  // namespace nlaunch::probe
