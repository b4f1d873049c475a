#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sys/loop.h"
#include "sys/sweep.h"

namespace nlaunch::supervise {

/// Kills what processes leave behind when they exit: many at a time per scan of /proc, without blocking the
/// loop.
class Cleaner {
 public:
  struct Result {
    std::vector<std::string> killed;     ///< "python (pid 4711)"
    std::vector<std::string> survivors;  ///< "python (pid 4711, state D)"
  };
  using Done = std::function<void(const Result&)>;

  explicit Cleaner(sys::Loop& loop) : loop_(loop) {}

  /// Calls `done` when nothing of the subtree is left, or after five seconds.
  void clean(sys::Subtree subtree, Done done);
  /// Kills the subtree of a process that may itself be alive. What it forks meanwhile is left to `clean`.
  static void kill(sys::Subtree subtree) { sys::kill_subtrees({subtree}); }

 private:
  struct Task {
    sys::Subtree subtree;
    Done done;
    int looks = 0;
    std::map<sys::ProcessId, sys::ProcessInfo> killed;
    std::vector<sys::ProcessInfo> there;  ///< at the last scan, including zombies
  };
  void look();
  void schedule(Duration delay);

  sys::Loop& loop_;
  std::vector<Task> tasks_;
  bool scheduled_ = false;
};

/// "python (pid 4711)"
std::string describe(const sys::ProcessInfo& process);
/// "python (pid 4711, state D)"
std::string describe_survivor(const sys::ProcessInfo& process);

}  // namespace nlaunch::supervise
