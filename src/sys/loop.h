#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/units.h"
#include "sys/wait_status.h"

namespace nlaunch::sys {

/// The events of one thread: timers, signals, readable descriptors and exits of children. Callbacks run one
/// after the other inside `run` and may call anything here.
class Loop {
 public:
  using Callback = std::function<void()>;
  using TimerId = std::uint64_t;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Calls `then` once, after `delay`.
  TimerId after(Duration delay, Callback then);
  void cancel(TimerId timer);

  /// Calls `then` for each arrival of `signal`; arrivals close together may be one call.
  void on_signal(int signal, Callback then);

  /// Calls `readable` whenever `fd` (a pipe or socket, non-blocking) has data or is at its end. The
  /// descriptor belongs to the caller, who must call `unwatch` before closing it.
  void watch(int fd, Callback readable);
  void unwatch(int fd);

  /// Calls `ended` once the child has been reaped. This loop reaps every child of the process: children not
  /// announced here (orphans that came to a subreaper) are reaped and ignored.
  void on_child(pid_t pid, std::function<void(WaitStatus)> ended);
  /// Stops waiting for a child: it will be reaped and ignored.
  void forget_child(pid_t pid);

  void post(Callback then);
  /// Runs until `stop`.
  void run();
  void stop();

 private:
  friend struct LoopAccess;  // sys/loop_access.h
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nlaunch::sys
