#pragma once
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nlaunch::shell {

/// Of a program: the `wait`s and the `kill`s of shells above it. A shell counts its own as they end.
struct WaitedFor {
  struct By {
    pid_t shell = 0;
    std::size_t number = 0;
    bool kills = false;
  };
  std::map<pid_t, std::size_t> before;  ///< shell → how many had ended when it went on to the program
  std::vector<By> by;                   ///< those that wait for its end, or end it
};

/// The end of `first` was waited for before `next` began.
bool had_ended(const WaitedFor& first, const WaitedFor& next);
/// `first` was ended by the script before `next` began.
bool was_ended(const WaitedFor& first, const WaitedFor& next);

/// The processes of a script: who has forked whom, and which programs in the background have ended when
/// others begin (`a & b & wait; c`). Told of what happens, in its order. A shell that waits does nothing else
/// before that is over.
class Processes {
 public:
  void forked(pid_t parent, pid_t child);
  /// A shell runs a command, expanded and quoted as `set -x` does.
  void traced(pid_t shell, const std::string& command);
  /// A program begins, the `index`th one.
  void started(pid_t pid, std::size_t index);

  /// Nothing: the script's own, or none of its.
  [[nodiscard]] std::optional<pid_t> parent_of(pid_t pid) const;
  [[nodiscard]] WaitedFor of(std::size_t index) const;

 private:
  struct Shell {
    std::vector<pid_t> children;  ///< not waited for so far
    std::vector<pid_t> awaited;   ///< by the `wait`, or the `kill`, that it has come to
    bool kills = false;
    std::size_t ended = 0;  ///< of both
  };
  void end_wait(pid_t pid, Shell& shell);

  std::map<pid_t, pid_t> parents_;
  std::map<pid_t, std::size_t> ended_at_fork_;  ///< by child: how many waits of its parent
  std::map<pid_t, Shell> shells_;
  std::map<pid_t, std::vector<std::size_t>> programs_;  ///< those that began in a process or below it
  std::map<std::size_t, WaitedFor> found_;
};

}  // namespace nlaunch::shell
