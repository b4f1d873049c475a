#pragma once
#include <sys/types.h>

#include "base/diagnostic.h"
#include "sys/files.h"

namespace nlaunch::evidence {

/// Makes sure that no process stays stopped because of nlaunch. A debugger attaches with SIGSTOP, and one
/// that is killed in between leaves the process stopped. A helper of this process, which outlives it, knows
/// which process a debugger stops; when this process exits, in whatever way, the helper continues those.
class ResumeGuard {
 public:
  /// Call it before the first thread is started: it forks.
  static Result<ResumeGuard> begin();

  ResumeGuard(ResumeGuard&&) = default;
  ResumeGuard& operator=(ResumeGuard&&) = default;

  /// A debugger is about to stop this process. Its state must not be T: it would be continued.
  void freezes(pid_t pid);
  /// The debugger has exited by itself.
  void let_go(pid_t pid);
  /// The debugger was killed, or failed: the process is continued immediately.
  void thaw(pid_t pid);

 private:
  explicit ResumeGuard(sys::UniqueFd pipe) : pipe_(std::move(pipe)) {}
  sys::UniqueFd pipe_;
};

}  // namespace nlaunch::evidence
