#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::sys {

/// Everything about a process to start, decided beforehand: the child decides nothing.
struct SpawnRequest {
  std::vector<std::string> argv;  ///< argv[0]: an absolute path, or a name for `find_program`
  std::vector<std::string> env;   ///< the whole environment, "NAME=VALUE"
  std::string cwd;                ///< empty: the caller's
  int in = -1;                    ///< descriptor for standard input; -1: /dev/null
  int out = -1;                   ///< descriptor for standard output; -1: /dev/null
  int err = -1;                   ///< descriptor for standard error; -1: /dev/null
  std::vector<unsigned> cpus;     ///< CPUs it may run on; empty: the caller's
  bool new_session = true;        ///< a separate session and process group
  bool die_with_parent = true;    ///< SIGKILL when the calling thread ends (PR_SET_PDEATHSIG)
  /// Under Yama (kernel.yama.ptrace_scope=1) this process and its descendants may trace the new one, which
  /// keeps that over an exec and does not pass it on: PR_SET_PTRACER. 0: only its ancestors.
  pid_t tracer = 0;
  /// Identifies all its descendants, even once it is gone: see Subtree in sys/sweep.h.
  std::optional<std::uint64_t> mark;
};

/// Starts a process with no descriptors except the three given, default signal dispositions and an empty
/// signal mask. Fails with the reason if the program cannot be executed; nothing is left behind then. The
/// caller reaps the pid. Call it from a thread that lives as long as the child may.
Result<pid_t> spawn(const SpawnRequest& request);

/// Makes every descriptor from `first` on close-on-exec. It does not allocate: a child may call it between
/// fork and exec.
bool close_on_exec_from(int first);

/// Executes `program` in place of this process, as `spawn` would start it: default signal dispositions, an
/// empty signal mask, and the limit of open files from before `permit_many_files`. Returns only on failure,
/// with errno set.
void become(const std::string& program, const std::vector<std::string>& argv,
            const std::vector<std::string>& env);

/// Raises this process's limit of open files as far as the system permits, and returns the new limit.
/// Processes that it starts get the old limit: programs that call select() rely on it.
std::uint64_t permit_many_files();

/// The path of `name` as execvp would find it in `path` (a PATH value), with relative entries resolved
/// against `cwd`. A name with a slash is only checked. The failure says where it searched.
Result<std::string> find_program(std::string_view name, std::string_view path, std::string_view cwd);

/// The value of NAME in an environment, or an empty view.
std::string_view env_value(const std::vector<std::string>& env, std::string_view name);
/// The environment of this process.
std::vector<std::string> own_environment();

}  // namespace nlaunch::sys
