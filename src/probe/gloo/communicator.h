#pragma once
#include <memory>

#include "probe/rank/communicator.h"
#include "probe/rank/device_copies.h"

namespace nlaunch::probe {

/// Ranks on CPUs, over Gloo and TCP: on the interface GLOO_SOCKET_IFNAME, or the loopback if it is not set.
/// Needs libnlaunch-gloo.so next to this program or in ../lib; the error says where it was searched for (id
/// "probe.unavailable") or why the ranks did not connect. With `device`, the messages of a workload are in
/// GPU memory: its steps start with a copy to pinned memory if a rank sends, and finish with a copy back if
/// it receives; both count as part of the step (torch's ProcessGroupGloo.cpp does the same with CUDA
/// tensors).
Result<std::unique_ptr<Communicator>> join_gloo(const JoinRequest& request,
                                                std::unique_ptr<DeviceCopies> device = nullptr);

}  // namespace nlaunch::probe
