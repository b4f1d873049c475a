#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shell/allocation.h"
#include "shell/words.h"

/// Programs that start other programs: which, how many times, and where. Each program is a row of a table in
/// launchers.cpp.
namespace nlaunch::shell {

struct Started {
  Words argv;
  std::vector<Task> tasks;        ///< one process per task; empty: `argv` replaces the launcher
  bool keeps_environment = true;  ///< false: starts with a login environment
  bool logs_in = false;           ///< and in the user's home directory
  std::string folder{};           ///< where its tasks run; empty: where it is called
  Words variables{};              ///< "NAME=VALUE": also set; "NAME": kept
};

/// What a command line starts; nullopt if it is not a launcher or starts no program.
std::optional<Started> started_by(const Words& argv, const Allocation& allocation);

/// True for container tools: the program inside may have another file system and environment.
bool is_container(const std::string& program);

/// The names of launchers.
std::vector<std::string> names_of_launchers();

}  // namespace nlaunch::shell
