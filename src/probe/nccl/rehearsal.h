#pragma once
#include <memory>

#include "probe/nccl/communicator.h"
#include "probe/rank/rehearsal.h"

namespace nlaunch::probe {

/// Over NCCL, on two streams of the GPU. One of `requests` per communicator; all ranks join them in this
/// order. `nccl` and `buffers` must outlive it.
Result<std::unique_ptr<Rehearsal>> rehearse_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                 const Drill& drill,
                                                 const std::vector<JoinRequest>& requests);

}  // namespace nlaunch::probe
