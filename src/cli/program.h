#pragma once

namespace nlaunch::cli {

/// The whole program: reads the line, does what the command does, and returns the exit code. Every command
/// that is linked (CommandEntry) is on offer.
int run_program(int argc, const char* const* argv);

}  // namespace nlaunch::cli
