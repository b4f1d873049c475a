#include "sys/wait_status.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <charconv>
#include <csignal>
#include <cstring>

namespace nlaunch::sys {

bool WaitStatus::by_signal() const {
  return WIFSIGNALED(native_);
}
int WaitStatus::code() const {
  return WIFEXITED(native_) ? WEXITSTATUS(native_) : 0;
}
int WaitStatus::signal() const {
  return by_signal() ? WTERMSIG(native_) : 0;
}

std::string WaitStatus::str() const {
  if (!by_signal()) return fmt::format("exited with code {}", code());
  const bool core = WCOREDUMP(native_);
  return fmt::format("was {} by {}{}", signal() == SIGKILL ? "killed" : "ended", signal_name(signal()),
                     core ? " (core dumped)" : "");
}

std::string signal_name(int signal) {
  if (signal == SIGRTMIN) return "SIGRTMIN";
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

int signal_number(const std::string& name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size())
    return number > 0 && number < NSIG ? number : 0;
  const std::string bare = name.starts_with("SIG") ? name.substr(3) : name;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && bare == known) return signal;
  }
  return 0;
}

}  // namespace nlaunch::sys
