#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "probe/gpu/kernels.h"
#include "probe/nccl/library.h"
#include "probe/rank/communicator.h"

namespace nlaunch::probe {

/// What the communicators of one GPU share: a stream and room for the largest message. Freed with the
/// process.
struct GpuBuffers {
  cudaStream_t stream = nullptr;
  std::uint32_t* send = nullptr;
  std::uint32_t* receive = nullptr;
  DeviceVerdict* comparison = nullptr;
  std::uint64_t bytes = 0;

  Result<void> reserve(std::uint64_t largest);
};

/// A communicator created as jobs create theirs: ncclCommInitRank with the id from rank 0. Blocks while ranks
/// are missing: run it under a watchdog.
Result<ncclComm_t> init_nccl(const NcclLibrary& nccl, const JoinRequest& request);

/// Joins over NCCL. `nccl` and `buffers` must outlive the communicator.
Result<std::unique_ptr<Communicator>> join_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                const JoinRequest& request);

}  // namespace nlaunch::probe
