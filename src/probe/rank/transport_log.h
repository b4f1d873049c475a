#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::probe {

/// How one rank reaches another, according to NCCL's own log.
struct PairTransport {
  int from = 0;
  int to = 0;
  std::string via;     ///< "P2P", "SHM", or "NET/" and the plugin's name: "NET/AWS Libfabric"
  std::string detail;  ///< everything in the log: "P2P/direct pointer", "NET/AWS Libfabric/0/GDRDMA"
  unsigned channels = 0;
  bool operator==(const PairTransport&) const = default;
};

struct TransportLog {
  std::string network;  ///< from "Using network ..."; empty if none was chosen
  std::vector<PairTransport> pairs;
};

/// What NCCL chooses for one operation.
struct Choice {
  std::string algorithm;  ///< "RING"
  std::string protocol;   ///< "LL128"
  unsigned channels = 0;
};

/// The last choice in a log written under NCCL_DEBUG_SUBSYS=TUNING; nothing if there is none. (NCCL v2.28.9,
/// src/enqueue.cc: "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"; up to 2.21 the two are
/// numbers, in the order of src/include/nccl_common.h.)
std::optional<Choice> read_choice(std::string_view log);

/// Reads a log written under NCCL_DEBUG=INFO with the subsystems INIT, P2P, SHM and NET.
TransportLog read_transport_log(std::string_view log);

}  // namespace nlaunch::probe
