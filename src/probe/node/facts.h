#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// Who this host is to NCCL, which takes two ranks for neighbours when this text is equal.
struct HostIdentity {
  std::string id;
  std::string source;  ///< "NCCL_HOSTID", or "hostname and boot id"
};
HostIdentity host_identity();

}  // namespace nlaunch::probe
