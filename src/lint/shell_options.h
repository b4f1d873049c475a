#pragma once
#include <map>
#include <optional>
#include <string_view>

#include "lint/lint_input.h"

/// The options of a shell (`set -e`, `set -x`) and its traps, as the recorded commands change them.
namespace nlaunch::lint {

/// An option of `set`.
struct ShellOption {
  char letter;  ///< 0: it has none
  std::string_view name;
};
inline constexpr ShellOption kErrexit{'e', "errexit"};
inline constexpr ShellOption kNounset{'u', "nounset"};
inline constexpr ShellOption kXtrace{'x', "xtrace"};
inline constexpr ShellOption kPipefail{'\0', "pipefail"};

/// What a command sets the option to: `set -euo pipefail`, `set +x`; nullopt for any other command.
std::optional<bool> sets_option(const ScriptCommand& command, const ShellOption& option);
/// True if the script's first line turns the option on: `#!/bin/bash -xe`.
bool shebang_sets(const Script& script, const ShellOption& option);

/// An option in each shell of a script: a shell begins with the state of the one from which it was started.
class OptionByShell {
 public:
  /// `script` must outlive this object.
  OptionByShell(const Script& script, ShellOption option)
      : script_(script), option_(option), first_(shebang_sets(script, option)) {}

  /// The state in the shell of a command, once the command has run. Gets all commands in order.
  bool after(const ScriptCommand& command);

 private:
  bool& in(int shell);

  const Script& script_;
  ShellOption option_;
  bool first_;
  std::map<int, bool> states_;
};

/// True if a command of the script sets a trap for EXIT or ERR, which can clean up in any case.
bool has_exit_trap(const Script& script);

/// True if a line between two places tests a command, so that a failure would be checked: `if`, `||`, `&&`.
bool follows_test(const SourceSpan& from, const SourceSpan& to);

}  // namespace nlaunch::lint
