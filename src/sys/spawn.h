#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::sys {

/// Everything about a process to be, decided beforehand: the child decides nothing.
struct SpawnRequest {
  std::vector<std::string> argv;  ///< argv[0]: an absolute path, or a name for `find_program`
  std::vector<std::string> env;   ///< the whole environment, "NAME=VALUE"
  std::string cwd;                ///< empty: the caller's
  int in = -1;                    ///< descriptor for standard input; -1: /dev/null
  int out = -1;                   ///< descriptor for standard output; -1: /dev/null
  int err = -1;                   ///< descriptor for standard error; -1: /dev/null
  std::vector<unsigned> cpus;     ///< CPUs it may run on; empty: the caller's
  bool new_session = true;        ///< a session and process group of its own
  bool die_with_parent = true;    ///< SIGKILL when the calling thread ends (PR_SET_PDEATHSIG)
  /// Under Yama (kernel.yama.ptrace_scope=1) this process and all below it may look into the new one, which
  /// keeps that over an exec and does not hand it on: PR_SET_PTRACER. 0: its ancestors alone.
  pid_t tracer = 0;
  /// By which all that descends from it can be told, even once it is gone: see Subtree in sys/sweep.h.
  std::optional<std::uint64_t> mark;
};

/// Starts a process: no descriptor but the three given, default signal dispositions, an empty signal mask.
/// Fails with the reason when the program cannot be executed; nothing is left behind then.
/// The caller reaps the pid. Call it from a thread that lives as long as the child may.
Result<pid_t> spawn(const SpawnRequest& request);

/// Every descriptor from `first` on is closed by the next exec. It allocates nothing: a child may call it
/// between fork and exec.
bool close_on_exec_from(int first);

/// Executes `program` in place of this process, as `spawn` would start it: default signal dispositions, an
/// empty signal mask, the limit of open files from before `permit_many_files`. Returns only where that fails,
/// with errno set.
void become(const std::string& program, const std::vector<std::string>& argv,
            const std::vector<std::string>& env);

/// Lets this process have as many files open as the system permits, and says how many that are. What it
/// starts from then on has the limit from before: programs that call select() rely on it.
std::uint64_t permit_many_files();

/// The path of `name` as execvp would find it in `path` (a PATH value), relative entries against `cwd`.
/// A name with a slash is only checked. The failure says where was looked.
Result<std::string> find_program(std::string_view name, std::string_view path, std::string_view cwd);

/// The value of NAME in a whole environment, or an empty view.
std::string_view env_value(const std::vector<std::string>& env, std::string_view name);
/// The environment of this process.
std::vector<std::string> own_environment();

}  // namespace nlaunch::sys
