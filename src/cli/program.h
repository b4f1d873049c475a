#pragma once
#include <cstddef>
#include <memory>

namespace CLI {
class App;
}

namespace nlaunch::cli {

struct Context;

/// The parser of the command line, with the general options and every command that is linked in
/// (CommandEntry), in the order of help. `width`: columns for help. `context` must outlive the parser.
std::unique_ptr<CLI::App> command_line(Context& context, std::size_t width);

/// The whole program: parses the command line, runs the command and returns the exit code.
int run_program(int argc, const char* const* argv);

}  // namespace nlaunch::cli
