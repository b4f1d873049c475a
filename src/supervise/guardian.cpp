#include "supervise/guardian.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>

#include "base/exit_code.h"
#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

constexpr std::array kForwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
/// Processes that hold a GPU may need seconds until the driver has cleaned up.
constexpr Duration kSweepLimit = std::chrono::seconds(20);

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigaddset(&set, SIGTSTP);
  for (const int signal : kForwarded) {
    if (!is_ignored(signal)) ::sigaddset(&set, signal);
  }
  ::sigaddset(&set, stop_signal());
  return set;
}

/// What the supervisor has announced: the last directory that it sent.
std::string announced(int channel) {
  std::string folder;
  std::array<char, 4096> message;
  for (;;) {
    const auto got = ::recv(channel, message.data(), message.size(), MSG_DONTWAIT);
    if (got <= 0) return folder;
    folder.assign(message.data(), static_cast<std::size_t>(got));
  }
}

class Guardian {
 public:
  Guardian(pid_t supervisor, sys::UniqueFd channel, sys::ProcessIds existing, sigset_t watched,
           sigset_t before)
      : supervisor_(supervisor),
        channel_(std::move(channel)),
        existing_(std::move(existing)),
        watched_(watched),
        before_(before) {}

  int run(const std::function<void(const SupervisorLost&)>& on_lost, const Successor& successor) {
    const auto status = await_supervisor();
    SupervisorLost lost;
    if (status.by_signal())
      lost = {announced(channel_.get()), status, forwarded_.contains(status.signal()), {}};
    const bool told_to_end = std::ranges::any_of(forwarded_, [](int signal) { return signal != SIGUSR1; });
    if (status.by_signal() && !lost.run_folder.empty() && !told_to_end && successor.become)
      hand_over(lost, successor);
    lost.swept = sys::sweep(existing_, kSweepLimit);
    if (!status.by_signal()) return status.code();
    on_lost(lost);
    return lost.forwarded ? exit_code_of_stop(status.signal()) : exit_code::internal;
  }

 private:
  sys::WaitStatus await_supervisor() {
    for (;;) {
      const int signal = ::sigwaitinfo(&watched_, nullptr);
      if (signal == SIGCHLD) {
        if (const auto status = reap()) return *status;
      } else if (signal == SIGTSTP) {
        ::raise(SIGSTOP);
      } else if (signal > 0) {
        forwarded_.insert(signal);
        ::kill(supervisor_, signal);
      }
    }
  }

  /// Restores the signal state for the next program.
  void hand_over(const SupervisorLost& lost, const Successor& successor) const {
    for (const int signal : {SIGTTOU, SIGTTIN}) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::fflush(nullptr);
    successor.become(lost);
    ::sigprocmask(SIG_BLOCK, &watched_, nullptr);
  }

  std::optional<sys::WaitStatus> reap() const {
    std::optional<sys::WaitStatus> ended;
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return ended;
      if (pid == supervisor_) ended = sys::WaitStatus(status);
    }
  }

  pid_t supervisor_;
  sys::UniqueFd channel_;
  sys::ProcessIds existing_;
  sigset_t watched_;
  sigset_t before_;
  std::set<int> forwarded_;
};

[[noreturn]] void guard(Guardian guardian, const std::function<void(const SupervisorLost&)>& on_lost,
                        const Successor& successor) {
  // In the background, a terminal with `tostop` must not stop the waiting guardian.
  ::signal(SIGTTOU, SIG_IGN);
  ::signal(SIGTTIN, SIG_IGN);
  const int code = guardian.run(on_lost, successor);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

pid_t GuardianLink::guardian() const {
  return guardian_ == 0 ? ::getpid() : guardian_;
}

bool GuardianLink::alive() const {
  if (!channel_) return true;
  pollfd watched{channel_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

void GuardianLink::announce(std::string_view run_folder) const {
  if (channel_) ::send(channel_.get(), run_folder.data(), run_folder.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

GuardianLink enter_guarded(const std::function<void(const SupervisorLost&)>& on_lost,
                           const Successor& successor) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error(fmt::format("cannot create a socket pair: {}", std::strerror(errno)));
  }
  sys::UniqueFd ours(ends[0]);
  sys::UniqueFd theirs(ends[1]);
  auto existing = successor.inherits ? successor.spared : sys::own_descendants();
  sys::become_subreaper();
  const auto watched = watched_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  std::fflush(nullptr);
  const pid_t guardian = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (child > 0) {
    theirs.reset();
    guard(Guardian(child, std::move(ours), std::move(existing), watched, before), on_lost, successor);
  }
  ours.reset();
  ::setsid();
  sys::become_subreaper();  // is not inherited
  ::signal(SIGPIPE, SIG_IGN);
  ::sigdelset(&before, stop_signal());
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return {std::move(theirs), guardian};
}

}  // namespace nlaunch::supervise
