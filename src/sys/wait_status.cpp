#include "sys/wait_status.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <csignal>

namespace nlaunch::sys {
namespace {

struct Named {
  int signal;
  std::string_view name;
};

/// sigabbrev_np() came with glibc 2.32.
constexpr Named kSignals[] = {
    {SIGHUP, "HUP"},       {SIGINT, "INT"},   {SIGQUIT, "QUIT"},   {SIGILL, "ILL"},   {SIGTRAP, "TRAP"},
    {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},   {SIGFPE, "FPE"},     {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},
    {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"},   {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
    {SIGSTKFLT, "STKFLT"}, {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"},   {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
    {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"}, {SIGURG, "URG"},     {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"},
    {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"}, {SIGPOLL, "POLL"}, {SIGPWR, "PWR"},
    {SIGSYS, "SYS"}};

}  // namespace

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
  return fmt::format("was {} by {}{}", signal() == SIGKILL ? "killed" : "terminated", signal_name(signal()),
                     core ? " (core dumped)" : "");
}

std::string signal_name(int signal) {
  if (signal == SIGRTMIN) return "SIGRTMIN";
  const auto* known = std::ranges::find(kSignals, signal, &Named::signal);
  return known == std::end(kSignals) ? fmt::format("signal {}", signal) : fmt::format("SIG{}", known->name);
}

int signal_number(const std::string& name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size())
    return number > 0 && number < NSIG ? number : 0;
  const std::string bare = name.starts_with("SIG") ? name.substr(3) : name;
  const auto* known = std::ranges::find(kSignals, std::string_view(bare), &Named::name);
  return known == std::end(kSignals) ? 0 : known->signal;
}

}  // namespace nlaunch::sys
