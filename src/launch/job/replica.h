#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

/// The replica of a Beaker task in which nlaunch was started, according to BEAKER_ variables.
namespace nlaunch::launch {

struct Replica {
  std::uint32_t rank = 0;
  std::uint32_t count = 1;
  std::string leader;  ///< name or address of the host of rank 0
  std::string host;    ///< of this one
};

/// Empty outside a replica. Contradictory variables are a failure.
Result<std::optional<Replica>> find_replica(const std::vector<std::string>& environment);

/// True in any Beaker job, with or without replicas.
bool in_beaker_job(const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
