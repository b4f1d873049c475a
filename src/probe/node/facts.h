#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// The identity of this host for NCCL, which treats two ranks as local to each other if this text is equal.
struct HostIdentity {
  std::string id;
  std::string source;  ///< "NCCL_HOSTID", or "hostname and boot id"
};
HostIdentity host_identity();

}  // namespace nlaunch::probe
