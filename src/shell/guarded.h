#pragma once
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "shell/scratch_layer.h"

namespace nlaunch::shell {

/// A program that a process is about to become. Paths are those of the machine, not of the layer.
struct ProgramStart {
  pid_t pid = 0;
  std::string path;  ///< absolute; it may not exist
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string folder;
  std::map<int, std::string> files;  ///< its descriptors: 1 → "/tmp/log", "pipe:[123]"
  bool background = false;           ///< started with `&`
};

/// How a path that is not there was asked for.
enum class Missing { name, file, folder };

/// Decides what becomes of what a guarded program does. Calls come from `run_guarded`, one after the other.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  /// The path of the program to become: `start.path`, or another one that stands in for it. What it names
  /// runs as machine code: never a file that a guarded program could have written. Empty: there is no such
  /// program.
  virtual std::string on_start(const ProgramStart& start) = 0;
  /// It connects to a port (`> /dev/tcp/HOST/PORT` of bash): whether somebody seems to answer.
  virtual bool on_connection(pid_t pid, const std::string& address, std::uint16_t port) = 0;
  virtual void on_fork(pid_t parent, pid_t child) = 0;
  virtual void on_end(pid_t pid, int status) = 0;  ///< of waitpid(2)
  /// Nothing new will come: everything ends, and GuardedEnd::stopped is "waits".
  [[nodiscard]] virtual bool has_seen_enough() const = 0;
  /// What is to be looked at, read or gone to is not there. The file in its place; for a folder any, which is
  /// then there, and empty. Empty: it is not there.
  virtual std::string stand_in(pid_t pid, const std::string& path, Missing asked) = 0;
  /// It starts others, which are to be seen before somebody ends it.
  [[nodiscard]] virtual bool starts_others(pid_t pid) const = 0;
  /// A path of the layer is written to, made or removed.
  virtual void on_change(pid_t pid, const std::string& path) = 0;
  /// A file is to be written to, and its folder is not there.
  virtual void on_no_folder(const std::string& path) = 0;
  /// Something is to be made in a folder that is not there: whether the folder seems to be there after all.
  [[nodiscard]] virtual bool seems_there(const std::string& folder) const = 0;
};

/// Of a program and all that it starts.
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
  /// SIGINT, SIGTERM or SIGHUP, which this process was sent meanwhile: the caller cleans up and raises it.
  int signal = 0;
  /// The limit that ended it, "time", "starts", "processes", "memory", "space", "waits", or "signal"; empty:
  /// none.
  std::string stopped;
};

/// SIGINT, SIGTERM, SIGHUP and SIGCHLD wait while it lives: whoever makes a folder for the layer has removed
/// it first.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Runs a program and all that it starts so that they have no effect outside of `layer`:
/// - every program start is asked of `watcher`, before it happens, and only code of the system's folders is
///   mapped;
/// - every path that is written to is one of the layer;
/// - there is no network: a connection seems to be made, and nothing passes through it;
/// - signals reach nobody but these processes, which end with this call, however they end;
/// - LD_PRELOAD, LD_LIBRARY_PATH and LD_AUDIT come to programs as ND_PRELOAD and so on, and to `watcher`
/// under
///   their names: libraries of a cluster are not here.
/// A seccomp filter stops each such call in the kernel, and ptrace decides (shell/confine.h). Where the
/// kernel permits no ptrace or no filter, it fails, and says what is missing. The caller has no
/// other children meanwhile.
Result<GuardedEnd> run_guarded(const GuardedProgram& program, ScratchLayer& layer, Watcher& watcher);

}  // namespace nlaunch::shell
