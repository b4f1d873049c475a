#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/exit_code.h"
#include "base/registry.h"
#include "cli/options.h"
#include "session/caller.h"

/// Shared by all commands. Only this layer prints: results to standard output, everything else to standard
/// error.
namespace nlaunch::cli {

/// The options that every command accepts, and the action of the command that was called. `console` is valid
/// once the command line has been parsed.
struct Context : session::Caller {
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
  bool plain = false;             ///< no line is drawn again
  std::function<int()> run;       ///< of the command that was called
  std::size_t behind_dashes = 0;  ///< words after the first `--`; the parser treats them like those before it
};

/// Standard output and error, in colour if `color`, NO_COLOR, TERM and the terminal allow it.
report::Console terminal_console(const Context& context);

/// Columns for help: those of the terminal that standard output is, at most 100; else 80.
std::size_t help_width();

/// The exit code of a command that would exit with `code`. If a result could not be written, this prints an
/// error and turns `ok` into `internal`. A reader that has closed its end is not an error.
int code_after_output(int code, const report::Console& console);

/// The part of help that lists a command.
enum class CommandGroup {
  run,
  see,
  check,
  convert,
  set_up,
  internal,  ///< for nlaunch itself: not listed
};

/// One command: adds itself to the command line of the program, and sets Context::run when it is called.
struct CommandEntry {
  std::string_view name;
  int order = 0;  ///< position in its group
  void (*add)(Command program, Context& context);
  CommandGroup group = CommandGroup::internal;
  std::span<const exit_code::Meaning> exit_codes = {};  ///< its own ones, for its man page
};

}  // namespace nlaunch::cli
