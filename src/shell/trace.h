#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shell/allocation.h"

namespace nlaunch::shell {

/// Where a shell is in its script.
struct Place {
  std::string script;
  std::uint32_t line = 0;
  std::string command;  ///< of that line, expanded and quoted as `set -x` does
};

/// A variable assignment in a script.
struct Assignment {
  std::string name;
  std::string value;
  std::string script;
  std::uint32_t line = 0;
};

/// A command that a shell ran.
struct TracedCommand {
  pid_t shell = 0;
  std::string script;      ///< the file that contains it, or that starts the shell that got it as text
  std::uint32_t line = 0;  ///< of that file
  std::uint32_t line_of_text = 0;  ///< its line in a text (bash -c, eval); else 0
  std::string text;                ///< expanded and quoted as `set -x` does
};

/// The words of such a text, unquoted.
std::vector<std::string> words_of(std::string_view traced);

/// The last command that belongs to the shell's script; nullptr if it ran none. An EXIT trap runs after it,
/// and its commands appear to be in line 1.
const TracedCommand* last_of_script(const std::vector<TracedCommand>& commands, pid_t shell);

/// True if the command compares its task number with another one that a step of `size` tasks has: `[ 1 -eq 5
/// ]`, `case $SLURM_NODEID in`. Such a task may do something that no other does.
bool compares_tasks(const std::string& traced, const Task& task, std::size_t size);

/// Parses bash's trace of the commands that it runs (`set -x`) as it is written.
class Trace {
 public:
  /// For PS4, with $'...': each line starts with the shell's pid, its script and the line.
  static constexpr const char* kPrompt = "+\\x01${BASHPID}\\x01${BASH_SOURCE[0]-}\\x01${LINENO}\\x01";

  /// Turns the trace on again before each command; not a command of the script.
  static constexpr const char* kGoesOn = "builtin set -x";

  /// Lines, of which the last may be incomplete. Skips scripts below `own`.
  void read(std::string_view bytes, const std::string& own);

  /// The latest position of a shell; nullptr if it reported none.
  [[nodiscard]] const Place* place_of(pid_t pid) const;
  [[nodiscard]] const std::vector<Assignment>& assignments() const { return assignments_; }
  /// In trace order; if there are very many, the newest are left out. For a command without a script, the
  /// line is its line in the text.
  [[nodiscard]] const std::vector<TracedCommand>& commands() const { return commands_; }

 private:
  void take(std::string_view line, const std::string& own);
  void note_assignment(const Place& place);

  std::string pending_;
  pid_t last_ = 0;              ///< the shell of the last line
  bool last_assigned_ = false;  ///< it set a variable
  std::map<pid_t, Place> places_;
  std::set<pid_t> texts_;  ///< shells that began with a text: bash -c
  std::vector<Assignment> assignments_;
  std::vector<TracedCommand> commands_;
};

}  // namespace nlaunch::shell
