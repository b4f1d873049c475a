#pragma once
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "sys/wait_status.h"

namespace nlaunch::session {

/// Blocks, while it exists, the signals that are meant for a run, so that each can be forwarded to the
/// current child run. The child runs in a session of its own and receives nothing from the terminal.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// The next signal that has arrived, including SIGCHLD; 0 if none arrives within `patience`.
  int next(Duration patience);
  /// The first signal that ends the current work; 0: none arrived.
  [[nodiscard]] int ended_by() const { return ended_by_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
  int ended_by_ = 0;
};

/// Runs `argv` with its standard error going to `log`, forwards the signals to it, and waits for it to exit.
/// The child is killed when this process is killed.
Result<sys::WaitStatus> run_child(const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment,
                                  const std::filesystem::path& log, HeldSignals& signals);

}  // namespace nlaunch::session
