#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "probe/communicator.h"
#include "probe/gpu_kernels.h"
#include "probe/nccl_library.h"

namespace nlaunch::probe {

/// What the communicators of one GPU share: a stream and room for the largest message. Freed with the
/// process.
struct GpuBuffers {
  cudaStream_t stream = nullptr;
  std::uint32_t* send = nullptr;
  std::uint32_t* receive = nullptr;
  DeviceVerdict* verdict = nullptr;
  std::uint64_t bytes = 0;

  Result<void> reserve(std::uint64_t largest);
};

/// Joins over NCCL, as the jobs do: ncclCommInitRank with the id that rank 0 leaves in the folder. `nccl` and
/// `buffers` outlive the communicator. Blocks as long as ranks are missing: run it under a watchdog.
Result<std::unique_ptr<Communicator>> join_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                const JoinRequest& request);

}  // namespace nlaunch::probe
