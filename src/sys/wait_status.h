#pragma once
#include <sys/types.h>

#include <string>

namespace nlaunch::sys {

/// How a process exited: `exit 9` and SIGKILL are not the same.
class WaitStatus {
 public:
  WaitStatus() = default;
  /// From the status that waitpid(2) fills in.
  explicit WaitStatus(int native) : native_(native) {}
  static WaitStatus exited(int code) { return WaitStatus((code & 0xff) << 8); }

  [[nodiscard]] bool by_signal() const;
  /// The exit code, or 0 if a signal killed it.
  [[nodiscard]] int code() const;
  /// The signal, or 0.
  [[nodiscard]] int signal() const;
  [[nodiscard]] bool ok() const { return native_ == 0; }
  /// As returned by waitpid(2).
  [[nodiscard]] int native() const { return native_; }
  /// As a shell reports it: the exit code, or 128 + signal.
  [[nodiscard]] int shell_code() const { return by_signal() ? 128 + signal() : code(); }
  /// "exited with code 3", "was killed by SIGKILL", "was terminated by SIGSEGV (core dumped)".
  [[nodiscard]] std::string str() const;
  bool operator==(const WaitStatus&) const = default;

 private:
  int native_ = 0;
};

/// "SIGTERM"; "signal 99" for a number without a name.
std::string signal_name(int signal);
/// Converts "TERM", "SIGTERM" or "15" to a number; 0 if there is none.
int signal_number(const std::string& name);

}  // namespace nlaunch::sys
