#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/bound.h"

/// What stands in front of a role's command (`wrapper:`), and what nlaunch knows of the tools that start a
/// program in a container: where their options stand, how they are told what to mount, and how variables
/// reach the program and not the tool. Sources: apptainer 1.5.3 (internal/pkg/util/env/create.go,
/// cmd/internal/cli/action_flags.go), bubblewrap 0.8 (bwrap(1)), enroot at 8ea147d (doc/cmd/start.md).
namespace nlaunch::plan {

using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// True where the wrapper starts a known tool for containers, itself or through others ("numactl").
bool is_container(const Words& wrapper);

/// True where a word of the command is a program whose processes are no descendants of its own: those of a
/// daemon (docker), of a scheduler, of another machine.
bool is_started_elsewhere(const Words& command);

struct WrapperProblem {
  std::string message;  ///< empty: there is none
  std::string hint;
};
/// Why nothing can be started behind this wrapper.
WrapperProblem problem_with(const Words& wrapper);

/// The file or folder of the image, as the wrapper has it. Empty where it has none, or one that is no path
/// (docker://...).
std::string image_of(const Words& wrapper);

/// Variables that the wrapper sets itself: by `env NAME=VALUE`, by options (`--env`, `--setenv`).
Variables set_by(const Words& wrapper);

/// Which variables reach the program.
struct Passage {
  enum class Of {
    all,
    plan,     ///< what the plan asks for; not what is inherited, nor what modules set
    nothing,  ///< but the preload
  };
  Of of = Of::all;
  std::string by;  ///< the option, or the tool, that does that
};
Passage passage_of(const Words& wrapper);

/// True for a process of the container tool itself, by its name (comm): it neither passes signals on once nor
/// outlives them.
bool belongs_to_tool(const Words& wrapper, std::string_view name);

/// A file or folder of this machine that is to be in the container under the same path.
struct Mount {
  std::string path;
  bool writable = false;
};
/// False for a path with a character that the tool takes for the end of it.
bool can_mount(const Words& wrapper, const std::string& path);
/// The wrapper with options for that; an unknown wrapper as it is.
Words with_mounts(const Words& wrapper, const std::vector<Mount>& mounts);

/// How something is started in the place of a process.
struct Start {
  Words argv;
  Words env;  ///< NAME=VALUE
};
/// `command` as a process of this role is started: behind its wrapper, with its environment. Of a container
/// it is the program inside that gets `preload`, and nothing of the tool. `more` are further variables.
Start start_of(const BoundProcess& process, const Words& command, const Variables& more = {});
/// The same for a probe: without the preload, and without what says that it is the process (NLAUNCH_*).
Start start_of_probe(const BoundProcess& process, const Words& command);

}  // namespace nlaunch::plan
