#pragma once
#include <functional>
#include <string>
#include <string_view>

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
  std::function<int()> run;       ///< of the command that was called
  std::size_t behind_dashes = 0;  ///< words after the first `--`; the parser treats them like those before it
};

/// Standard output and error, in colour if `color`, NO_COLOR, TERM and the terminal allow it.
report::Console terminal_console(const Context& context);

/// The exit code of a command that would exit with `code`. If a result could not be written, this prints an
/// error and turns `ok` into `internal`. A reader that has closed its end is not an error.
int code_after_output(int code, const report::Console& console);

/// One command: adds itself to the command line of the program, and sets Context::run when it is called.
struct CommandEntry {
  std::string_view name;
  int order = 0;  ///< position in help
  void (*add)(Command program, Context& context);
};

}  // namespace nlaunch::cli
