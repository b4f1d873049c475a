#pragma once
#include <memory>

#include "probe/communicator.h"

namespace nlaunch::probe {

/// Ranks on CPUs, over Gloo and TCP: on the interface GLOO_SOCKET_IFNAME, or the loopback without one.
/// Needs libnlaunch-gloo.so beside this program or in ../lib; the failure says where it was looked for
/// (id "probe.unavailable") or why the ranks did not meet.
Result<std::unique_ptr<Communicator>> join_gloo(const JoinRequest& request);

}  // namespace nlaunch::probe
