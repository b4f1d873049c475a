#include "probe/gpu/node.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "probe/gpu/call.h"
#include "probe/nvml/nvml.h"

namespace nlaunch::probe {

Result<int> take_devices(const std::string& list) {
  if (!list.empty()) {
    ::setenv("CUDA_VISIBLE_DEVICES", list.c_str(), 1);
    ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  }
  int count = 0;
  const auto error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return failure("probe.unavailable", "CUDA has no device here: {}", cudaGetErrorString(error));
  }
  if (auto done = cuda("cudaGetDeviceCount", error); !done) return std::unexpected(done.error());
  const auto wanted = static_cast<int>(std::ranges::count(list, ',')) + 1;
  if (!list.empty() && count != wanted) {
    return failure("probe.unavailable", "CUDA shows {} of the {} GPUs in CUDA_VISIBLE_DEVICES={}", count,
                   wanted, list);
  }
  return count;
}

nlohmann::json describe_device(int device) {
  nlohmann::json out{{"gpu", device}, {"bus_id", ""}, {"name", ""}};
  std::array<char, 32> bus{};
  if (cuda("", cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device)))
    out["bus_id"] = full_bus_id(bus.data());
  cudaDeviceProp properties{};
  if (cuda("", cudaGetDeviceProperties(&properties, device))) out["name"] = properties.name;
  return out;
}

Marks::~Marks() {
  for (auto* event : events_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

Result<void> Marks::create() {
  Result<void> done;
  for (auto& event : events_) {
    if (done) done = cuda("cudaEventCreate", cudaEventCreate(&event));
  }
  return done;
}

Result<void> Marks::record(std::size_t event, cudaStream_t stream) {
  return cuda("cudaEventRecord", cudaEventRecord(events_[event], stream));
}

Result<double> Marks::seconds(std::size_t piece) const {
  float milliseconds = 0;
  const auto done = cuda("cudaEventElapsedTime",
                         cudaEventElapsedTime(&milliseconds, events_[2 * piece], events_[2 * piece + 1]));
  if (!done) return std::unexpected(done.error());
  return static_cast<double>(milliseconds) / 1e3;
}

std::string option_in(std::span<const std::string> arguments, std::string_view name) {
  const auto found = std::ranges::find(arguments, name);
  return found == arguments.end() || found + 1 == arguments.end() ? "" : *(found + 1);
}

}  // namespace nlaunch::probe
