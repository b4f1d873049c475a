#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "cli/options.h"
#include "session/caller.h"

/// What all commands share. Only this layer prints: results to standard output, everything else to standard
/// error.
namespace nlaunch::cli {

/// The options that every command takes, and what the called one has to do. `console` is right once the line
/// has been read.
struct Context : session::Caller {
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
  std::function<int()> run;       ///< of the command that was called
  std::size_t behind_dashes = 0;  ///< words behind the first `--`, which the parser takes like those before
};

/// Standard output and error, in colour where `color`, NO_COLOR, TERM and the terminal say so.
report::Console terminal_console(const Context& context);

/// The exit code of a command that would end with `code`: where a result could not be written, that is said,
/// and "fine" becomes `internal`. A reader that has gone away is no failure.
int code_after_output(int code, const report::Console& console);

/// One command: adds itself to the program's line, and sets Context::run when it is called.
struct CommandEntry {
  std::string_view name;
  int order = 0;  ///< in help
  void (*add)(Command program, Context& context);
};

}  // namespace nlaunch::cli
