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
  bool timed_out = false;  ///< it was killed at the deadline (or cut short), with its process group
  std::string out;
  std::string err;
};

/// Runs a command until it exits and captures both outputs up to `limit` bytes each (the rest is read and
/// dropped). At the deadline it is killed; this returns within a second of the deadline, whatever state the
/// process is in.
Result<CommandResult> run_command(SpawnRequest request, Duration deadline, std::size_t limit = 4U << 20U);

/// During its lifetime, this thread's commands are killed as at their deadline as soon as `enough` returns
/// true: their caller is no longer interested.
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
