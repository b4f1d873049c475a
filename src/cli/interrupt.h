#pragma once

namespace nlaunch::cli {

/// Notes SIGINT, SIGTERM, SIGHUP and the signal of `nlaunch stop` while it lives, for work that has no loop
/// of its own.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// The first such signal, or 0.
  [[nodiscard]] static int received();
};

}  // namespace nlaunch::cli
