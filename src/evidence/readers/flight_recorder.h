#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::evidence {

/// What one rank has enqueued: an entry of PyTorch's flight recorder (torch/csrc/distributed/c10d,
/// FlightRecorder.hpp; formats 2.1 of PyTorch 2.4 to 2.10).
struct RecordedOperation {
  std::int64_t sequence = 0;  ///< collective_seq_id: counts the collectives of the group
  bool point_to_point = false;
  int peer = -1;       ///< for a send or recv: the other's rank within the group; -1: unknown
  std::string name;    ///< "all_reduce", without the backend's "nccl:"
  std::string inputs;  ///< sizes and types, "[[1024]] Float"
  std::string outputs;
  std::string state;  ///< scheduled, started, completed
};

struct RecordedGroup {
  std::string description;                    ///< "default_pg", or the argument of new_group
  std::vector<int> ranks;                     ///< global ranks; empty if the dump does not list them
  std::vector<RecordedOperation> operations;  ///< in enqueue order; the oldest may be lost
};

/// The dump of one rank: groups by name.
struct Recording {
  int rank = 0;
  std::string version;
  std::map<std::string, RecordedGroup> groups;
  /// PyTorch wrote it by itself when a collective failed: the rank may have entered others since.
  bool is_earlier = false;
};

/// Reads a dump, a pickle or JSON.
Result<Recording> read_recording(std::string_view bytes, int rank);

}  // namespace nlaunch::evidence
