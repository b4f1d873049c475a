#pragma once
#include <cuda_runtime_api.h>

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// All GPUs of a node in this one process, in the order of `list`, which becomes CUDA_VISIBLE_DEVICES with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID; empty: as in the environment. Call it before any CUDA function. The error
/// has the id "probe.unavailable" if there is no driver or no GPU.
Result<int> take_devices(const std::string& list);

/// {"gpu": device, "bus_id", "name"}, as far as CUDA knows them.
nlohmann::json describe_device(int device);

/// Seconds of each of some pieces of work on one stream of the current device.
class Marks {
 public:
  explicit Marks(std::size_t pieces) : events_(2 * pieces) {}
  ~Marks();
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  Result<void> create();
  Result<void> begin(std::size_t piece, cudaStream_t stream) { return record(2 * piece, stream); }
  Result<void> end(std::size_t piece, cudaStream_t stream) { return record(2 * piece + 1, stream); }
  /// Once the stream has reached that point.
  Result<double> seconds(std::size_t piece) const;

 private:
  Result<void> record(std::size_t event, cudaStream_t stream);
  std::vector<cudaEvent_t> events_;
};

/// The value after `name` among the arguments; empty: not given.
std::string option_in(std::span<const std::string> arguments, std::string_view name);

}  // namespace nlaunch::probe
