#pragma once
#include <cuda_runtime.h>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// The result of a CUDA call. The error is cleared from the thread, where the next launch would find it.
inline Result<void> cuda(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  return failure("probe.cuda", "{}: {}", call, cudaGetErrorString(error));
}

}  // namespace nlaunch::probe
