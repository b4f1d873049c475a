#pragma once
#include <memory>

#include "probe/rank/communicator.h"
#include "probe/rank/device_copies.h"

namespace nlaunch::probe {

/// Ranks on CPUs, over Gloo and TCP: on the interface GLOO_SOCKET_IFNAME, or the loopback without one.
/// Needs libnlaunch-gloo.so beside this program or in ../lib; the failure says where it was looked for
/// (id "probe.unavailable") or why the ranks did not meet. With `device` the messages of a workload live on a
/// GPU: its steps begin with a copy to pinned memory where a rank sends, and end with a copy back where it
/// receives, and both belong to their time (torch's ProcessGroupGloo.cpp does the same with CUDA tensors).
Result<std::unique_ptr<Communicator>> join_gloo(const JoinRequest& request,
                                                std::unique_ptr<DeviceCopies> device = nullptr);

}  // namespace nlaunch::probe
