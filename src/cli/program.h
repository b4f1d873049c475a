#pragma once

namespace nlaunch::cli {

/// The whole program: parses the command line, runs the command and returns the exit code. Offers every
/// command that is linked in (CommandEntry).
int run_program(int argc, const char* const* argv);

}  // namespace nlaunch::cli
