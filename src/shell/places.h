#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shell/processes.h"
#include "shell/scratch_layer.h"
#include "shell/stand_ins.h"
#include "shell/trace.h"
#include "sys/files.h"

namespace nlaunch::shell {

/// Where the processes of a script are in it: what bash has traced, and which process forked which. Gets
/// events in order; `read` precedes each, since bash traces a command before the command does anything.
class Places {
 public:
  /// All arguments must outlive this object. `script`: the path of the recorded script.
  Places(const std::string& script, const ScratchLayer& layer, const OwnFiles& own)
      : script_(script), layer_(layer), own_(own) {}

  /// Takes in what bash has traced since the last call.
  void read();
  /// `in_front`: the shell above `parent` waits until that one has ended.
  void forked(pid_t parent, pid_t child, bool in_front);
  void becomes_shell(pid_t pid, bool reads_commands) { processes_.becomes_shell(pid, reads_commands); }
  void ended(pid_t pid) { processes_.ended(pid); }
  /// The `index`th program starts.
  void started(pid_t pid, std::size_t index, bool background, bool piped) {
    using enum Processes::Foreground;
    const auto foreground = !background ? of_all : is_in_foreground(pid) ? of_its_shell : none;
    processes_.started(pid, index, foreground, piped);
  }

  /// The latest position of a shell itself; nullptr if it reported none.
  [[nodiscard]] const Place* of_shell(pid_t shell) const { return trace_.place_of(shell); }
  /// The position of the process, or of the shell that forked it; not above `top`, a launcher: the shell that
  /// started it in the background has gone on. nullptr: unknown.
  [[nodiscard]] const Place* of(pid_t pid, pid_t top = 0) const;
  /// The line of that position; 0: unknown.
  [[nodiscard]] std::uint32_t line_of(pid_t pid) const;
  /// A line as it is written in a script; empty: unknown.
  [[nodiscard]] std::string text_of_line(const std::string& script, std::uint32_t line) const;
  [[nodiscard]] std::optional<pid_t> parent_of(pid_t pid) const { return processes_.parent_of(pid); }
  [[nodiscard]] bool is_new_shell(pid_t pid) const { return processes_.is_new_shell(pid); }
  [[nodiscard]] bool reads_commands(pid_t pid) const { return processes_.reads_commands(pid); }
  /// Which programs the script had waited for when the `index`th started.
  [[nodiscard]] WaitedFor waited(std::size_t index) const { return processes_.of(index); }

  /// The recorded script itself, not a file that it sources or starts.
  [[nodiscard]] bool is_the_script(const std::string& path) const;
  /// The last command of the script itself, not of its EXIT trap; the line is one of the script even if a
  /// sourced file has the command. nullopt if its shell reported no position.
  [[nodiscard]] std::optional<Place> last_of_the_script() const;

  [[nodiscard]] const Trace& trace() const { return trace_; }
  /// Everything that was traced. A command of a text has the position of the shell that received the text.
  [[nodiscard]] std::vector<TracedCommand> take_traced() { return std::exchange(traced_, {}); }

 private:
  void note_traced();
  [[nodiscard]] bool is_in_foreground(pid_t pid) const;
  [[nodiscard]] bool polls(const TracedCommand& command) const;
  [[nodiscard]] std::uint32_t line_that_sources(const TracedCommand* last) const;

  const std::string& script_;
  const ScratchLayer& layer_;
  const OwnFiles& own_;
  Trace trace_;
  Processes processes_;
  sys::UniqueFd trace_file_;
  std::vector<TracedCommand> traced_;
  mutable std::map<std::string, std::vector<std::string>> lines_;  ///< of scripts
  std::map<pid_t, Place> texts_;  ///< for shells that run a text: where they were started
  pid_t script_shell_ = 0;        ///< the first process that forked another
};

}  // namespace nlaunch::shell
