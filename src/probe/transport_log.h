#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::probe {

/// How one rank reaches another, as NCCL's own log says.
struct PairTransport {
  int from = 0;
  int to = 0;
  std::string via;     ///< "P2P", "SHM", or "NET/" and the plugin's name: "NET/AWS Libfabric"
  std::string detail;  ///< all that the log says: "P2P/direct pointer", "NET/AWS Libfabric/0/GDRDMA"
  unsigned channels = 0;
  bool operator==(const PairTransport&) const = default;
};

struct TransportLog {
  std::string network;  ///< of "Using network ..."; empty where none was chosen
  std::vector<PairTransport> pairs;
};

/// Reads a log written under NCCL_DEBUG=INFO with the subsystems INIT, P2P, SHM and NET.
TransportLog read_transport_log(std::string_view log);

}  // namespace nlaunch::probe
