#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/bound.h"

/// The wrapper of a role's command (`wrapper:`), and what nlaunch knows about tools that start a program in a
/// container: where their options are, how to mount something, and how to pass variables to the program but
/// not to the tool. Sources: apptainer 1.5.3 (internal/pkg/util/env/create.go,
/// cmd/internal/cli/action_flags.go), bubblewrap 0.8 (bwrap(1)), enroot at 8ea147d (doc/cmd/start.md).
namespace nlaunch::plan {

using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// True if the wrapper starts a known container tool, directly or through another program ("numactl").
bool is_container(const Words& wrapper);

/// True if a word of the command is a program whose processes are not its descendants: those of a daemon
/// (docker), of a scheduler, of another machine.
bool is_started_elsewhere(const Words& command);

struct WrapperProblem {
  std::string message;  ///< empty: no problem
  std::string hint;
};
/// Why nothing can be started with this wrapper.
WrapperProblem problem_with(const Words& wrapper);

/// The file or directory of the image, as written in the wrapper. Empty if there is none, or if it is not a
/// path (docker://...).
std::string image_of(const Words& wrapper);

/// Variables that the wrapper sets itself: with `env NAME=VALUE` or options (`--env`, `--setenv`).
Variables set_by(const Words& wrapper);

/// Which variables reach the program.
struct Passage {
  enum class Of {
    all,
    plan,     ///< what the plan sets; not inherited variables or those set by modules
    nothing,  ///< nothing except the preload
  };
  Of of = Of::all;
  std::string by;  ///< the option or the tool that causes this
};
Passage passage_of(const Words& wrapper);

/// True for a process of the container tool itself, by its name (comm): it does not pass signals on exactly
/// once, and does not outlive them.
bool belongs_to_tool(const Words& wrapper, std::string_view name);

/// A file or directory of this machine that must be in the container under the same path.
struct Mount {
  std::string path;
  bool writable = false;
};
/// False for a path with a character that the tool treats as a separator.
bool can_mount(const Words& wrapper, const std::string& path);
/// The wrapper with the options for the mounts; an unknown wrapper is unchanged.
Words with_mounts(const Words& wrapper, const std::vector<Mount>& mounts);

/// How to start something in place of a process.
struct Start {
  Words argv;
  Words env;  ///< NAME=VALUE
};
/// `command` started like a process of this role: with its wrapper and its environment. In a container, only
/// the program inside gets `preload`, not the tool. `more` are additional variables.
Start start_of(const BoundProcess& process, const Words& command, const Variables& more = {});
/// The same for a probe: without the preload, and without the variables that identify the process
/// (NLAUNCH_*).
Start start_of_probe(const BoundProcess& process, const Words& command);

}  // namespace nlaunch::plan
