#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shell/tracee.h"

namespace nlaunch::shell {

/// A process that is traced.
struct Tracee {
  bool born = false;                   ///< it has stopped once, as every new child does
  bool announced = false;              ///< its parent's fork has been seen; it is held until then
  std::optional<Registers> restore{};  ///< at the exit of the call that it makes
  std::optional<long> pretended{};     ///< the result of a call that is not made
  std::optional<Word> told_time{};     ///< where the call puts the seconds
};

/// The processes that are traced. Some are held, which keeps the order of the script:
/// - A parent, at its fork, until its child, or what that forked, has started a program other than a shell or
///   env, has exited or waits for something. This way a background server has started before the script
///   queries it.
/// - What runs in the background of a script that lists its jobs, at its exit, until the script waits.
class Tracees {
 public:
  using Clock = std::chrono::steady_clock;

  /// The process that was forked first by the caller.
  void add_first(pid_t pid) { all_[pid] = {.born = true, .announced = true}; }
  /// A child, which is let go if it has stopped before; its parent is held.
  void add(pid_t child, pid_t parent);
  /// Added, if it was not known: a child may stop before its parent reports the fork.
  Tracee& of(pid_t pid) { return all_[pid]; }
  [[nodiscard]] bool has(pid_t pid) const { return all_.contains(pid); }
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  [[nodiscard]] std::uint64_t resident_bytes() const;
  void kill_all() const;

  /// It has exited: what waits for that goes on.
  void remove(pid_t pid);

  /// Lets the parent go on that is held for this child.
  std::optional<pid_t> release(pid_t child);
  /// Likewise, and the parent's parent, and so on.
  void release_all_above(pid_t child);
  /// Lets those parents go on whose child waits for something.
  void release_those_who_wait();

  /// It is at its exit, and held there.
  void hold_end(pid_t pid);
  void let_end(pid_t pid);
  /// The first that was started; nullopt if none is held.
  std::optional<pid_t> let_one_end();
  /// Likewise, and `sleeper`, which is stopped, goes on behind that; at once if none is held.
  void let_one_end_before(pid_t sleeper);
  /// Lets one end if nothing else happens. `idle`: nothing has been heard from any process for a while.
  void look_for_idleness(bool idle);
  /// Lets one end if the script looks for that in a loop without a pause.
  void look_for_busy_loop();

  /// How long to wait for news before the next look.
  [[nodiscard]] std::chrono::milliseconds glance() const {
    return std::chrono::milliseconds(held_.empty() && ending_.empty() ? 20 : 1);
  }

 private:
  /// True if a process that it has forked, or one below that, still runs: `$(date)` of its command.
  [[nodiscard]] bool runs_others(pid_t pid) const;
  /// True if nothing happens any more until a process that is held at its exit ends.
  [[nodiscard]] bool all_wait() const;

  std::map<pid_t, Tracee> all_;
  std::map<pid_t, pid_t> held_;  ///< child → its parent, which is held at its fork
  std::map<pid_t, pid_t> parents_;
  std::map<pid_t, Clock::time_point> born_;
  std::vector<pid_t> ending_;        ///< held at their exits
  std::map<pid_t, pid_t> sleepers_;  ///< what is let end → the `sleep` that goes on behind that
  Clock::time_point ending_since_{};
  int idle_looks_ = 0;
};

}  // namespace nlaunch::shell
