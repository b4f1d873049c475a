#pragma once
#include <cstdint>
#include <string>

/// Whether a script that stopped at a line had reached its end.
namespace nlaunch::shell {

/// True if the command on this line (from 1) is the last of its file: what follows only closes blocks, prints
/// or exits. False for line 0 and for a file that cannot be read.
bool nothing_follows(const std::string& script, std::uint32_t line);

/// True if a loop that ends on this line has a command behind it there:
/// `while busy; do sleep 1; done; python b.py`.
bool something_follows_loop(const std::string& script, std::uint32_t line);

}  // namespace nlaunch::shell
