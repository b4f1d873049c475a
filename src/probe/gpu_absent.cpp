#include "probe/gpu_rank.h"

namespace nlaunch::probe {

Result<std::unique_ptr<GpuRank>> open_gpu_rank(int /*device*/, const std::string& /*library*/) {
  return failure("probe.unavailable", "this nlaunch-probe was built without CUDA: it cannot use a GPU");
}

}  // namespace nlaunch::probe
