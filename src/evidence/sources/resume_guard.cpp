#include "evidence/sources/resume_guard.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>

namespace nlaunch::evidence {
namespace {

/// Positive: it is frozen; negative: it was released. A write of so few bytes is atomic (PIPE_BUF).
using Message = pid_t;

/// This also cancels a SIGSTOP that has not been delivered yet (signal(7)).
void continue_process(pid_t pid) {
  ::kill(pid, SIGCONT);
}

[[noreturn]] void keep_watch(int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, "nlaunch-thaw");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::array<int, 3> standard{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (const int fd : standard) ::close(fd);
  std::set<pid_t> frozen;
  Message message = 0;
  for (;;) {
    const auto got = ::read(pipe, &message, sizeof(message));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(message)) break;
    if (message > 0) {
      frozen.insert(message);
    } else {
      frozen.erase(-message);
    }
  }
  // Its debuggers die with it; only then can the processes that they hold be continued.
  constexpr std::chrono::milliseconds kForTheDebugger{300};
  if (!frozen.empty()) std::this_thread::sleep_for(kForTheDebugger);
  for (const auto pid : frozen) continue_process(pid);
  ::_exit(0);
}

}  // namespace

Result<ResumeGuard> ResumeGuard::begin() {
  auto pipe = sys::make_pipe();
  if (!pipe) return std::unexpected(pipe.error());
  const auto child = ::fork();
  if (child < 0) return failure("evidence.fork", "cannot fork: {}", std::strerror(errno));
  if (child == 0) {
    pipe->write.reset();
    keep_watch(pipe->read.get());
  }
  return ResumeGuard(std::move(pipe->write));
}

void ResumeGuard::freezes(pid_t pid) {
  const Message message = pid;
  sys::write_all(pipe_.get(), {reinterpret_cast<const char*>(&message), sizeof(message)});
}

void ResumeGuard::let_go(pid_t pid) {
  freezes(-pid);
}

void ResumeGuard::thaw(pid_t pid) {
  continue_process(pid);
  let_go(pid);
}

}  // namespace nlaunch::evidence
