#pragma once
#include "probe/gpu/load.h"

namespace nlaunch::probe {

/// When it returns, the first products are running on the GPU.
Result<std::unique_ptr<GpuLoad>> start_load(int device);

}  // namespace nlaunch::probe
