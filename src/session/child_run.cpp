#include "session/child_run.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "supervise/stop_signal.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::session {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {seconds.count(), std::chrono::nanoseconds(duration - seconds).count()};
}

}  // namespace

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  ::sigaddset(&held_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, supervise::stop_signal()}) {
    if (!is_ignored(signal)) ::sigaddset(&held_, signal);  // stays ignored under nohup
  }
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::next(Duration patience) {
  const auto time = to_timespec(patience);
  const int signal = ::sigtimedwait(&held_, nullptr, &time);
  if (signal <= 0) return 0;
  const bool ends = signal != SIGCHLD && signal != SIGUSR1 && signal != SIGUSR2;
  if (ends && ended_by_ == 0) ended_by_ = signal;
  return signal;
}

Result<sys::WaitStatus> run_child(const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment,
                                  const std::filesystem::path& log, HeldSignals& signals) {
  constexpr Duration kGlance = std::chrono::seconds(1);
  constexpr mode_t kPrivate = 0600;
  const sys::UniqueFd file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kPrivate));
  if (!file) return failure("run.log", "cannot write '{}': {}", log.string(), std::strerror(errno));
  sys::SpawnRequest request;
  request.argv = argv;
  request.env = environment;
  request.err = file.get();
  const auto child = sys::spawn(request);
  if (!child) return std::unexpected(child.error());
  for (;;) {
    int status = 0;
    if (::waitpid(*child, &status, WNOHANG) == *child) return sys::WaitStatus(status);
    const int signal = signals.next(kGlance);
    if (signal != 0 && signal != SIGCHLD) ::kill(*child, signal);
  }
}

}  // namespace nlaunch::session
