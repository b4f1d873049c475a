#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "shell/guarded.h"
#include "shell/words.h"

namespace nlaunch::shell {

/// What a program reads as its standard input.
struct ProgramInput {
  std::string text;      ///< or the path of a file
  bool repeats = false;  ///< repeats this line forever: `yes | program`
  bool is_file = false;
  bool operator==(const ProgramInput&) const = default;
};

/// Tracks who reads the output of programs.
class Pipes {
 public:
  /// A program reads from one pipe, and possibly prints to another.
  void note(const ProgramStart& start);
  /// The input that the shell itself gives a program: a here-document, the output of echo or `cat FILE`, a
  /// file. nullopt for the output of another program, which did not run. Consumes the input.
  [[nodiscard]] std::optional<ProgramInput> input_of(const ProgramStart& start) const;
  /// The last program that prints to its standard input, a pipe; empty: unknown.
  [[nodiscard]] Words writer_to(const ProgramStart& start) const;
  /// `$(…)`, `| while read`, and `| grep -q`, whose exit code is what it is read for; not `| tee log`.
  [[nodiscard]] bool is_read_by_shell(std::string pipe) const;
  /// `| sort > FILE`, but not a file of the recorder itself, which are below `own`.
  [[nodiscard]] bool ends_in_file(std::string pipe, std::string_view own) const;

 private:
  std::map<std::string, std::string> passed_on_;  ///< a pipe → where its reader prints
  std::map<std::string, std::string> repeated_;   ///< a pipe → what `yes` prints
  std::map<std::string, Words> writers_;          ///< a pipe → who prints to it
  std::set<std::string> of_programs_;             ///< pipes to which programs print
};

/// True for programs that tell of the machine or of what is installed: `module list`, `pip show`.
bool tells_of_machine(const std::string& program);
/// True for a grep, or `jq -e`, of which only the exit code is of use.
bool only_asks(const ProgramStart& start);
/// True if its standard input differs from that of the shell that starts it; without a shell, always true.
bool has_own_input(const ProgramStart& start, std::optional<pid_t> shell);
/// What bash wrote to the program's input pipe before starting it; nothing can be added to it. Consumes the
/// input.
std::optional<std::string> here_document(const ProgramStart& start);

/// True if a line of a script only prints the output of its substitutions:
/// `echo "Python: $(python --version)"`.
bool only_shows(std::string line);

/// Whether it prints into a pipe that the shell above it does not print into: `program | tee log`.
bool prints_into_own_pipe(const ProgramStart& start, std::optional<pid_t> shell);

}  // namespace nlaunch::shell
