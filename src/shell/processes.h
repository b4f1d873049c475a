#pragma once
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nlaunch::shell {

/// For a program: the `wait`s and `kill`s of the shells above it, and where they ran it in the foreground. A
/// shell counts its own as they finish.
struct WaitedFor {
  struct By {
    pid_t shell = 0;
    std::size_t number = 0;
    bool kills = false;
  };
  std::map<pid_t, std::size_t> before;  ///< shell → how many had finished when it reached the program
  std::vector<By> by;                   ///< those that wait for it, or kill it
  bool is_awaited = false;              ///< the script does not end before it has exited
};

/// The script waited for `first` to exit before `next` started.
bool had_ended(const WaitedFor& first, const WaitedFor& next);
/// The script killed `first` before `next` started.
bool was_ended(const WaitedFor& first, const WaitedFor& next);

/// The processes of a script: which one forked which, and which background programs had exited when others
/// started (`a & b & wait; c`). Gets events in order. A shell that waits does nothing else until the wait is
/// over.
class Processes {
 public:
  /// `in_front`: the shell above `parent` does nothing else until that one has ended.
  void forked(pid_t parent, pid_t child, bool in_front = false);
  /// A process of the script becomes a shell: `bash gen.sh`.
  /// `reads_commands`: from its standard input.
  void becomes_shell(pid_t pid, bool reads_commands = false) {
    shells_[pid].traces = shells_[pid].by_exec = true;
    shells_[pid].reads_commands = reads_commands;
  }
  void ended(pid_t pid) { ended_.insert(pid); }
  /// A shell runs a command, expanded and quoted as `set -x` does.
  void traced(pid_t shell, const std::string& command);
  /// Up to which shell the shells above a program do nothing else until it exits.
  enum class Foreground { none, of_its_shell, of_all };
  /// The `index`th program starts. `piped`: it prints into a pipe that its shell does not.
  void started(pid_t pid, std::size_t index, Foreground foreground = Foreground::none, bool piped = false);

  /// nullopt for the script's own process, or one that does not belong to it.
  [[nodiscard]] std::optional<pid_t> parent_of(pid_t pid) const;
  /// True if a process became a shell by exec, as `bash -c` does, and not by a fork of the shell above it.
  [[nodiscard]] bool is_new_shell(pid_t pid) const;
  /// True for a shell that gets its commands as its standard input.
  [[nodiscard]] bool reads_commands(pid_t pid) const;
  [[nodiscard]] WaitedFor of(std::size_t index) const;

 private:
  struct Shell {
    std::vector<pid_t> children;  ///< not waited for so far
    std::vector<pid_t> awaited;   ///< by the current `wait` or `kill`
    bool kills = false;
    bool in_front = false;  ///< `awaited` is a shell that runs in front of it
    bool traces = false;    ///< it is one of the script's own
    bool by_exec = false;   ///< likewise, and another program before
    bool reads_commands = false;
    bool is_program = false;  ///< it was started as one: a launcher, not a shell
    std::size_t ended = 0;    ///< of both
  };
  void end_wait(pid_t pid, Shell& shell);
  /// By each shell above it up to `top`, or all.
  [[nodiscard]] bool is_awaited(pid_t pid, pid_t top = 0) const;

  std::map<pid_t, pid_t> parents_;
  std::map<pid_t, std::size_t> ended_at_fork_;  ///< by child: the number of its parent's waits
  std::map<pid_t, Shell> shells_;
  std::map<pid_t, std::vector<std::size_t>> programs_;  ///< programs started in a process or below it
  std::map<std::size_t, WaitedFor> found_;
  std::map<std::size_t, pid_t> pids_;  ///< of the programs
  std::set<pid_t> awaited_;            ///< processes for whose end the shell above them has waited
  std::set<pid_t> killed_;             ///< and those that it has killed
  std::set<pid_t> left_;               ///< in the background of a shell that became a program
  std::set<pid_t> ended_;              ///< that have exited
};

}  // namespace nlaunch::shell
