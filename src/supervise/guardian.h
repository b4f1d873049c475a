#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "sys/files.h"
#include "sys/sweep.h"
#include "sys/wait_status.h"

/// nlaunch is two processes. The guardian is the pid that the user sees: it does nothing but pass signals on
/// and wait. The supervisor is its child, in a session of its own (so that what the terminal does to the
/// foreground process group does not reach it), and the parent of all roles. Both are child subreapers and
/// each learns of the other's end, so that whichever is killed, the other one leaves nothing behind.
namespace nlaunch::supervise {

/// The supervisor's end of the channel to its guardian.
class GuardianLink {
 public:
  /// Without a guardian: it is never lost.
  GuardianLink() = default;
  GuardianLink(sys::UniqueFd channel, pid_t guardian) : channel_(std::move(channel)), guardian_(guardian) {}

  /// Readable (end of stream) once the guardian is gone; -1 without one.
  [[nodiscard]] int fd() const { return channel_.get(); }
  /// The pid that the user sees; of this process without a guardian.
  [[nodiscard]] pid_t guardian() const;
  /// False once the guardian is gone.
  [[nodiscard]] bool alive() const;
  /// Tells the guardian where the run's files are, in case it has to write the end there itself.
  void announce(std::string_view run_folder) const;

 private:
  sys::UniqueFd channel_;
  pid_t guardian_ = 0;
};

/// The supervisor ended by a signal. When this is handed over, its tree is already swept.
struct SupervisorLost {
  std::string run_folder;  ///< as announced; empty when it was not
  sys::WaitStatus status;
  bool forwarded = false;  ///< the guardian itself passed this signal on: the user ended the run early
  sys::SweepReport swept;
};

/// For a run that goes on without its supervisor.
struct Successor {
  /// Called in the guardian, before anything is swept, when the supervisor was killed and the guardian had
  /// passed no signal on but SIGUSR1, which ends no run. It becomes the program that takes the run over,
  /// under the same pid; where it returns, the run is lost.
  std::function<void(const SupervisorLost&)> become{};
  /// This process is such a program: what is below it already is the run's.
  bool inherits = false;
};

/// Splits this process in two; to be called before there is any thread. Returns in the supervisor only. The
/// guardian ends with the supervisor's exit code, or, after `on_lost` (called in the guardian, to say it and
/// to write summary.json), with 128 + signal where the user's own signal ended the supervisor, else 70.
///
/// The guardian forwards INT, TERM, HUP, QUIT, USR1 and USR2 (not those that were ignored from the start, as
/// under nohup), and always what `nlaunch stop` sends. TSTP stops the guardian alone: the shell has its
/// prompt back, and the run goes on.
GuardianLink enter_guarded(const std::function<void(const SupervisorLost&)>& on_lost,
                           const Successor& successor = {});

}  // namespace nlaunch::supervise
