#pragma once
#include <sys/types.h>

#include "base/diagnostic.h"
#include "sys/files.h"

namespace nlaunch::evidence {

/// Sees to it that no process stays stopped because of us. A debugger attaches with SIGSTOP, and one that is
/// killed on the way leaves the process behind with it. A helper of this process, which outlives it, knows
/// whom a debugger stops; when this process ends, however it ends, the helper continues those.
class ResumeGuard {
 public:
  /// To be called before the first thread: it forks.
  static Result<ResumeGuard> begin();

  ResumeGuard(ResumeGuard&&) = default;
  ResumeGuard& operator=(ResumeGuard&&) = default;

  /// A debugger is about to stop this process. Its state must not be T: it would be continued.
  void freezes(pid_t pid);
  /// The debugger has ended by itself.
  void let_go(pid_t pid);
  /// The debugger was killed, or failed: the process is continued at once.
  void thaw(pid_t pid);

 private:
  explicit ResumeGuard(sys::UniqueFd pipe) : pipe_(std::move(pipe)) {}
  sys::UniqueFd pipe_;
};

}  // namespace nlaunch::evidence
