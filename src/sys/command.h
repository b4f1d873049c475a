#pragma once
#include <string>

#include "base/diagnostic.h"
#include "base/units.h"
#include "sys/spawn.h"
#include "sys/wait_status.h"

namespace nlaunch::sys {

struct CommandResult {
  WaitStatus status;
  bool timed_out = false;  ///< it was killed at the deadline, with its process group
  std::string out;
  std::string err;
};

/// Runs a command to its end, both outputs captured up to `limit` bytes each (the rest is read and dropped).
/// At the deadline it is killed; this returns within a second of it whatever state the process is in.
Result<CommandResult> run_command(SpawnRequest request, Duration deadline, std::size_t limit = 4U << 20U);

}  // namespace nlaunch::sys
