#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "shell/guarded.h"

namespace nlaunch::shell {

/// Who reads what programs print.
class Pipes {
 public:
  /// A program reads from one pipe, and may print to another.
  void note(const ProgramStart& start);
  /// `$(…)` and `| while read`, not `| tee log`.
  [[nodiscard]] bool is_read_by_shell(std::string pipe) const;

 private:
  std::map<std::string, std::string> passed_on_;  ///< a pipe → where its reader prints
};

/// Its standard input is another one than that of the shell that starts it; without a shell any is its own.
bool has_own_input(const ProgramStart& start, std::optional<pid_t> shell);
/// What bash has written into its input, a pipe, before it started the program, and nobody can add to. The
/// program does not read it any more.
std::optional<std::string> here_document(const ProgramStart& start);

/// A line of a script shows what its substitutions print, and does nothing else with it:
/// `echo "Python: $(python --version)"`.
bool only_shows(std::string line);

}  // namespace nlaunch::shell
