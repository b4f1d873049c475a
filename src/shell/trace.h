#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
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

/// A variable as a script set it.
struct Assignment {
  std::string name;
  std::string value;
  std::string script;
  std::uint32_t line = 0;
};

/// A command that a shell ran.
struct TracedCommand {
  pid_t shell = 0;
  std::string script;      ///< the file that holds it, or that starts the shell which was given it as a text
  std::uint32_t line = 0;  ///< of that file
  std::uint32_t line_of_text = 0;  ///< where it is of a text (bash -c, eval): the line of that; else 0
  std::string text;                ///< expanded and quoted as `set -x` does
};

/// The words of such a text, without their quotes.
std::vector<std::string> words_of(std::string_view traced);

/// The last command of a shell that is its script's own; nullptr where it ran none. A trap for its EXIT runs
/// behind that, and its commands seem to be in line 1.
const TracedCommand* last_of_script(const std::vector<TracedCommand>& commands, pid_t shell);

/// The command compares the number of its task with another one that a step of `size` tasks has: `[ 1 -eq 5
/// ]`, `case $SLURM_NODEID in`. What a task does then may be nothing that the others do.
bool compares_tasks(const std::string& traced, const Task& task, std::size_t size);

/// What bash tells of the commands that it runs (`set -x`), read as it is written.
class Trace {
 public:
  /// For PS4, with $'...': each line begins with the shell's pid, its script and the line.
  static constexpr const char* kPrompt = "+\\x01${BASHPID}\\x01${BASH_SOURCE[0]-}\\x01${LINENO}\\x01";

  /// Lines, the last of which may be cut. What is of scripts below `own` is left out.
  void read(std::string_view bytes, const std::string& own);

  /// The newest place of a shell; nullptr where it has told of none.
  [[nodiscard]] const Place* place_of(pid_t pid) const;
  [[nodiscard]] const std::vector<Assignment>& assignments() const { return assignments_; }
  /// In the order in which bash told of them; the newest of very many are left out. Of a command without a
  /// script the line is that of its text.
  [[nodiscard]] const std::vector<TracedCommand>& commands() const { return commands_; }

 private:
  void take(std::string_view line, const std::string& own);
  void note_assignment(const Place& place);

  std::string pending_;
  pid_t last_ = 0;              ///< whose line was the last
  bool last_assigned_ = false;  ///< it set a variable
  std::map<pid_t, Place> places_;
  std::vector<Assignment> assignments_;
  std::vector<TracedCommand> commands_;
};

}  // namespace nlaunch::shell
