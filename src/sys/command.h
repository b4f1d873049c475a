#pragma once
#include <functional>
#include <string>

#include "base/diagnostic.h"
#include "base/units.h"
#include "sys/spawn.h"
#include "sys/wait_status.h"

namespace nlaunch::sys {

struct CommandResult {
  WaitStatus status;
  bool timed_out = false;  ///< it was killed at the deadline (or was cut short), with its process group
  std::string out;
  std::string err;
};

/// Runs a command to its end, both outputs captured up to `limit` bytes each (the rest is read and dropped).
/// At the deadline it is killed; this returns within a second of it whatever state the process is in.
Result<CommandResult> run_command(SpawnRequest request, Duration deadline, std::size_t limit = 4U << 20U);

/// While it lives, this thread's commands are ended as at their deadline as soon as `enough` says so: what
/// they are part of is not wanted any more.
class CutShort {
 public:
  explicit CutShort(std::function<bool()> enough);
  ~CutShort();
  CutShort(const CutShort&) = delete;
  CutShort& operator=(const CutShort&) = delete;

 private:
  std::function<bool()> before_;
};

}  // namespace nlaunch::sys
