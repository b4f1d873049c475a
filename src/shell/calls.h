#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shell/confine.h"
#include "shell/guarded.h"
#include "shell/scratch_layer.h"
#include "shell/tracees.h"

namespace nlaunch::shell {

/// What becomes of the system calls of guarded processes, as run_guarded promises it: a call is made with the
/// paths of the layer, or another one in its place, or none, and then its result is made up.
class Calls {
 public:
  /// All of these must outlive this object.
  Calls(ScratchLayer& layer, Watcher& watcher, Tracees& tracees, const Limits& limits)
      : layer_(layer), watcher_(watcher), tracees_(tracees), most_starts_(limits.starts) {}

  /// A process has stopped at the entry of a call, or at its exit: it goes on.
  void at_entry(pid_t pid);
  void at_exit(pid_t pid);
  /// A process has exited.
  void on_end(pid_t pid) { ended_.emplace(pid, 0); }
  /// Sends the signals that are due.
  void send_signals();
  /// The limit that a call has reached since it was asked last: "starts", "waits"; empty: none.
  [[nodiscard]] std::string take_limit() { return std::exchange(over_, {}); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A signal that arrives late.
  struct Signal {
    pid_t pid = 0;
    int number = 0;
    Clock::time_point due;
  };

  void at_start(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call);
  void at_path(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call);
  void at_link(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call);
  void at_read_link(pid_t pid, Tracee& process, const Registers& registers, const WatchedCall& call);
  void at_code(pid_t pid, Tracee& process, const Registers& registers);
  void at_signal(pid_t pid, Tracee& process, const Registers& registers);
  void at_socket(pid_t pid, Tracee& process, const Registers& before);
  void at_connection(pid_t pid, Tracee& process, const Registers& registers);
  void at_clock(pid_t pid, Tracee& process, const Registers& registers);

  std::expected<std::filesystem::path, int> path_of(pid_t pid, const Registers& registers,
                                                    const PathArgument& at, bool follows);
  [[nodiscard]] bool is_of_other_process(const std::filesystem::path& path) const;
  [[nodiscard]] bool is_of_layer(pid_t pid, const Registers& registers, int index) const;

  ScratchLayer& layer_;
  Watcher& watcher_;
  Tracees& tracees_;
  std::size_t most_starts_;
  std::size_t starts_ = 0;
  std::vector<Signal> signals_;
  std::map<pid_t, int> ended_;  ///< how often it has been queried since
  std::string over_;
};

}  // namespace nlaunch::shell
