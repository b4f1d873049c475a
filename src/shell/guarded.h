#pragma once
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "shell/scratch_layer.h"

namespace nlaunch::shell {

/// A program that a process is about to execute. Paths are paths of the machine, not of the layer.
struct ProgramStart {
  pid_t pid = 0;
  std::string path;  ///< absolute; it may not exist
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string folder;
  std::map<int, std::string> files;  ///< its descriptors: 1 → "/tmp/log", "pipe:[123]"
  bool background = false;           ///< started with `&`

  /// What is behind a descriptor; empty if it is closed.
  [[nodiscard]] std::string file(int descriptor) const {
    const auto found = files.find(descriptor);
    return found == files.end() ? std::string() : found->second;
  }
};

/// How a missing path was accessed.
enum class Missing { name, file, folder };

/// Decides how the actions of a guarded program are handled. `run_guarded` makes the calls, one at a time.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  /// The path of the program to execute: `start.path`, or a stand-in for it. The file runs as machine code,
  /// so it must never be one that a guarded program could have written. Empty: the program does not exist.
  virtual std::string on_start(const ProgramStart& start) = 0;
  /// True if the program that has just started is a command of the script itself, and does not only compute a
  /// word of one.
  [[nodiscard]] virtual bool has_begun() const { return true; }
  /// The process connects to a port (`> /dev/tcp/HOST/PORT` of bash). Returns whether the connection appears
  /// to succeed.
  virtual bool on_connection(pid_t pid, const std::string& address, std::uint16_t port) = 0;
  virtual void on_fork(pid_t parent, pid_t child) = 0;
  virtual void on_end(pid_t pid, int status) = 0;  ///< of waitpid(2)
  /// True if nothing new will happen: all processes are killed, and GuardedEnd::stopped is "waits".
  [[nodiscard]] virtual bool has_seen_enough() const = 0;
  /// A path that is queried, read or changed into does not exist. Returns the file to use instead; for a
  /// directory any non-empty result, and then it exists and is empty. Empty: the path does not exist.
  virtual std::string stand_in(pid_t pid, const std::string& path, Missing asked) = 0;
  /// True if the process starts others, which must be recorded before it is killed.
  [[nodiscard]] virtual bool starts_others(pid_t pid) const = 0;
  /// True if the process only stands in for a program, and exits at once: a signal does not reach it, so that
  /// its exit code does not depend on which of them comes first.
  [[nodiscard]] virtual bool only_stands_in(pid_t pid) const = 0;
  /// True if a process that has exited appears to be alive for a while: a server that does not really run.
  [[nodiscard]] virtual bool outlives_its_end() const { return true; }
  /// With that: for as long as the script looks.
  [[nodiscard]] virtual bool never_ends() const { return false; }
  /// True if what runs in the background, and has nothing to do, ends only when the script waits for
  /// something: a shell that lists its jobs (`jobs -p`) finds all of them.
  [[nodiscard]] virtual bool lists_jobs() const { return false; }
  /// The script kills it.
  virtual void on_kill(pid_t /*pid*/) {}
  /// How far the time of day that its processes see is ahead.
  [[nodiscard]] virtual std::chrono::seconds ahead() const { return {}; }
  /// True if that time may differ from the real one.
  [[nodiscard]] virtual bool may_be_ahead() const { return false; }
  /// A path in the layer is written, created or removed.
  virtual void on_change(pid_t pid, const std::string& path) = 0;
  /// A file is opened for writing in a directory that does not exist.
  virtual void on_no_folder(const std::string& path) = 0;
  /// Something is created in a missing directory. Returns whether the directory should appear to exist.
  [[nodiscard]] virtual bool seems_there(const std::string& folder) const = 0;
};

/// Limits for a program and everything it starts.
struct Limits {
  Duration time = std::chrono::seconds(20);
  std::size_t starts = 5000;       ///< of programs
  std::size_t processes = 200;     ///< at the same time
  std::uint64_t memory = 1 << 30;  ///< bytes, of all processes
  std::uint64_t space = 1 << 28;   ///< bytes, of the layer
};

struct GuardedProgram {
  std::vector<std::string> argv;  ///< argv[0]: an absolute path
  std::vector<std::string> environment;
  std::string folder;
  int in = -1;   ///< descriptor of its input; -1: /dev/null
  int out = -1;  ///< for both outputs; likewise
  Limits limits;
};

struct GuardedEnd {
  int status = 0;  ///< of the first process, as of waitpid(2)
  /// SIGINT, SIGTERM or SIGHUP, if this process received one meanwhile: the caller cleans up and raises it.
  int signal = 0;
  /// The limit that stopped it: "time", "starts", "processes", "memory", "space", "waits" or "signal"; empty:
  /// none.
  std::string stopped;
  bool cut = false;  ///< the first process had ended; others, which went on, were killed
};

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD during its lifetime, so that the owner of the layer's directory
/// can remove it first.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Runs a program and everything it starts without any effect outside `layer`:
/// - `watcher` decides on every program start before it happens, and only code in the system's directories
///   can be mapped;
/// - every path that is written to is in the layer;
/// - there is no network: a connection appears to be established, but carries no data;
/// - signals reach only these processes, and all of them are gone when this call returns;
/// - programs get LD_PRELOAD, LD_LIBRARY_PATH and LD_AUDIT as ND_PRELOAD and so on, `watcher` under their own
///   names: a cluster's libraries are not here.
/// A seccomp filter stops each such call in the kernel, and the tracer decides (shell/confine.h). Fails with
/// what is missing if the kernel does not permit ptrace or a filter. The caller must have no other children
/// meanwhile.
Result<GuardedEnd> run_guarded(const GuardedProgram& program, ScratchLayer& layer, Watcher& watcher);

}  // namespace nlaunch::shell
