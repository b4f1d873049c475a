#pragma once
#include <optional>
#include <string>
#include <vector>

#include "shell/allocation.h"
#include "shell/words.h"

/// Programs that start other programs: what, how often, and where. A program is a row of a table in
/// launchers.cpp.
namespace nlaunch::shell {

struct Started {
  Words argv;
  std::vector<Task> tasks;        ///< where it starts one for each task; empty: `argv` takes its place
  bool keeps_environment = true;  ///< false: it starts with a login's
  Words variables{};              ///< "NAME=VALUE" that it sets beside, "NAME" that it keeps
};

/// What a command line starts; nothing: it is no launcher, or starts no program.
std::optional<Started> started_by(const Words& argv, const Allocation& allocation);

/// A container: what it starts may be of another file system, and have another environment.
bool is_container(const std::string& program);

/// The names of launchers.
std::vector<std::string> names_of_launchers();

}  // namespace nlaunch::shell
