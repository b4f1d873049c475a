#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::evidence {

/// A rank of a communicator, as reported by NCCL's RAS.
struct RasRank {
  int rank = 0;
  pid_t pid = 0;        ///< 0: not reported
  std::string address;  ///< of its node, an IP address
  /// How many of each operation it has launched ("AllReduce" → 120). The text format reports only those that
  /// differ.
  std::map<std::string, std::int64_t> launched;
  std::string status;   ///< "RUNNING", "INIT", "FINALIZE", "ABORT", "NOCOMM"; empty: not reported
  bool dead = false;    ///< NCCL considers its process dead
  bool silent = false;  ///< its process did not answer
  bool failed = false;  ///< it reports an error
};

struct RasCommunicator {
  std::string hash;
  int size = 0;  ///< 0: not reported
  std::vector<RasRank> ranks;
  /// What most of the unlisted ranks have launched, for operations whose counts differ: in the text format,
  /// where only outliers are listed.
  std::map<std::string, std::int64_t> usual;
};

struct RasReport {
  std::string version;
  std::vector<RasCommunicator> communicators;
  std::vector<RasRank>
      processes;  ///< dead or silent ones, `rank` -1: the text format reports them separately
};

/// The answer to VERBOSE STATUS, JSON (NCCL 2.28.7 and newer) or text (src/ras/client_support.cc of 2.24 to
/// 2.30).
Result<RasReport> read_ras(std::string_view text);

}  // namespace nlaunch::evidence
