#pragma once
#include <csignal>
#include <vector>

#include "supervise/state_machine.h"

namespace nlaunch::session {

/// Records signals while it exists, for work that has no event loop; afterwards they are handled as before.
class Interrupts {
 public:
  /// SIGINT, SIGTERM, SIGHUP and the signal of `nlaunch stop`.
  Interrupts();
  /// The signals that would end a run under these rules. Other signals for a run are ignored: there is no
  /// process yet that they could be meant for.
  explicit Interrupts(const supervise::Rules& rules);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Installs the handlers again, after an event loop has replaced them.
  void take() const;

  /// The first such signal; 0: none.
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
