#pragma once
#include <csignal>
#include <vector>

#include "supervise/state_machine.h"

namespace nlaunch::session {

/// Notes signals while it lives, for work that has no loop of its own; then they are taken as before.
class Interrupts {
 public:
  /// SIGINT, SIGTERM, SIGHUP and the signal of `nlaunch stop`.
  Interrupts();
  /// What would end a run under these rules. What else a run could be sent is passed over: nobody is there
  /// yet whom it is meant for.
  explicit Interrupts(const supervise::Rules& rules);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Takes the signals again, after a loop that had them.
  void take() const;

  /// The first such signal, or 0.
  [[nodiscard]] static int received();

 private:
  struct Taken {
    int signal = 0;
    void (*handler)(int) = nullptr;
    struct sigaction before {};
  };
  void add(int signal, void (*handler)(int));

  std::vector<Taken> taken_;
};

}  // namespace nlaunch::session
