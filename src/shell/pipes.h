#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "shell/guarded.h"

namespace nlaunch::shell {

/// What a program reads as its standard input.
struct ProgramInput {
  std::string text;      ///< or the path of a file
  bool repeats = false;  ///< that line for ever: `yes | program`
  bool is_file = false;
  bool operator==(const ProgramInput&) const = default;
};

/// Who reads what programs print.
class Pipes {
 public:
  /// A program reads from one pipe, and may print to another.
  void note(const ProgramStart& start);
  /// What the shell itself gives a program: a here-document, what echo or `cat FILE` prints, a file. Nothing
  /// for what another program prints, which did not run. The program does not read it any more.
  [[nodiscard]] std::optional<ProgramInput> input_of(const ProgramStart& start) const;
  /// `$(…)` and `| while read`, not `| tee log`.
  [[nodiscard]] bool is_read_by_shell(std::string pipe) const;

 private:
  std::map<std::string, std::string> passed_on_;  ///< a pipe → where its reader prints
  std::map<std::string, std::string> repeated_;   ///< a pipe → what `yes` prints
  std::set<std::string> of_programs_;             ///< pipes to which programs print
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
