#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "probe/gpu/load.h"
#include "probe/rank/communicator.h"
#include "probe/rank/device_copies.h"
#include "probe/rank/rehearsal.h"

namespace nlaunch::probe {

/// One GPU and one libnccl, as a rank of a job has them.
class GpuRank {
 public:
  virtual ~GpuRank() = default;

  /// {"device", "bus_id" (as CUDA reports it), "uuid", "name", "free_bytes", "total_bytes", "visible" (how
  /// many GPUs CUDA shows here), "nvml_uuid" (for that bus id) or "nvml_error"}
  [[nodiscard]] virtual nlohmann::json gpu() const = 0;
  /// As `describe_nccl`; {"asked","error"} if it could not be loaded; null if none was requested.
  [[nodiscard]] virtual nlohmann::json library() const = 0;

  virtual Result<std::unique_ptr<Communicator>> join(const JoinRequest& request) = 0;
  /// One of `requests` per communicator of the drill.
  virtual Result<std::unique_ptr<Rehearsal>> rehearse(const Drill& drill,
                                                      const std::vector<JoinRequest>& requests) = 0;
  /// For messages over Gloo that are in this GPU's memory.
  virtual std::unique_ptr<DeviceCopies> make_copies() = 0;
  /// Keeps the GPU busy while it works for this rank.
  virtual Result<std::unique_ptr<GpuLoad>> keep_busy() = 0;
  /// NCCL's own last error in this process; may be empty.
  [[nodiscard]] virtual std::string last_error() const = 0;
  /// Makes this libnccl read NCCL_DEBUG and related variables from the environment again; false if it cannot.
  virtual bool reread_debug_settings() = 0;
};

/// Creates the CUDA context of `device` and loads `library` (empty: none) in parallel. An error with the id
/// "probe.unavailable" means that this program was built without CUDA or that the machine has no driver.
Result<std::unique_ptr<GpuRank>> open_gpu_rank(int device, const std::string& library);

}  // namespace nlaunch::probe
