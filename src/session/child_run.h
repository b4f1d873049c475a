#pragma once
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "sys/wait_status.h"

namespace nlaunch::session {

/// Holds back, while it lives, the signals that are for a run, so that each can be handed to the one that
/// goes on: that runs in a session of its own, and gets nothing from the terminal.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// The next one that has come, SIGCHLD among them; 0 when none has within `patience`.
  int next(Duration patience);
  /// The first that ends whatever goes on; 0: none came.
  [[nodiscard]] int ended_by() const { return ended_by_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
  int ended_by_ = 0;
};

/// Runs `argv`, what it says going to `log`, and waits for its end, handing it the signals. It is killed when
/// this process is.
Result<sys::WaitStatus> run_child(const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment,
                                  const std::filesystem::path& log, HeldSignals& signals);

}  // namespace nlaunch::session
