#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "sys/files.h"
#include "sys/sweep.h"
#include "sys/wait_status.h"

/// nlaunch runs as two processes. The guardian is the pid that the user sees: it only forwards signals and
/// waits. The supervisor is its child, in its own session (so that terminal signals to the foreground process
/// group do not reach it), and the parent of all roles. Both are child subreapers, and each notices when the
/// other exits: whichever is killed, the other leaves nothing behind.
namespace nlaunch::supervise {

/// The supervisor's end of the channel to its guardian.
class GuardianLink {
 public:
  /// Without a guardian: it is never lost.
  GuardianLink() = default;
  GuardianLink(sys::UniqueFd channel, pid_t guardian) : channel_(std::move(channel)), guardian_(guardian) {}

  /// Readable (end of stream) once the guardian is gone; -1 without one.
  [[nodiscard]] int fd() const { return channel_.get(); }
  /// The pid that the user sees; this process's own pid without a guardian.
  [[nodiscard]] pid_t guardian() const;
  /// False once the guardian is gone.
  [[nodiscard]] bool alive() const;
  /// Tells the guardian where the run's files are, in case it has to write the summary itself.
  void announce(std::string_view run_folder) const;

 private:
  sys::UniqueFd channel_;
  pid_t guardian_ = 0;
};

/// The supervisor was killed by a signal. When this is passed on, its process tree has already been killed.
struct SupervisorLost {
  std::string run_folder;  ///< as announced; empty if it was not
  sys::WaitStatus status;
  bool forwarded = false;  ///< the guardian itself forwarded this signal: the user stopped the run early
  sys::SweepReport swept;
};

/// For a run that continues without its supervisor.
struct Successor {
  /// Called in the guardian, before anything is killed, when the supervisor was killed and the guardian had
  /// forwarded no signal other than SIGUSR1, which stops no run. It becomes the program that takes over the
  /// run, under the same pid; if it returns, the run is lost.
  std::function<void(const SupervisorLost&)> become{};
  /// This process is such a program: its existing descendants belong to the run, except `spared`.
  bool inherits = false;
  sys::ProcessIds spared{};
};

/// Splits this process in two; call it before any thread exists. Returns only in the supervisor. The guardian
/// exits with the supervisor's exit code or, after `on_lost` (called in the guardian to report the loss and
/// write summary.json), with 128 + signal if the user's own signal ended the supervisor, else 70.
///
/// The guardian forwards INT, TERM, HUP, QUIT, USR1 and USR2 (except those that were ignored at startup, as
/// under nohup), and always the signal of `nlaunch stop`. TSTP stops only the guardian: the shell gets its
/// prompt back and the run continues.
GuardianLink enter_guarded(const std::function<void(const SupervisorLost&)>& on_lost,
                           const Successor& successor = {});

}  // namespace nlaunch::supervise
