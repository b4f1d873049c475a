#include "shell/guarded.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

#include "shell/calls.h"
#include "shell/confine.h"
#include "shell/tracee.h"
#include "shell/tracees.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::shell {
namespace {

using Clock = std::chrono::steady_clock;

/// SIGCHLD, and the signals that request this process to stop.
sigset_t waited_for() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  return signals;
}

class Tracer {
 public:
  Tracer(const GuardedProgram& program, ScratchLayer& layer, Watcher& watcher)
      : program_(program), layer_(layer), watcher_(watcher), end_(Clock::now() + program.limits.time) {}

  GuardedEnd follow(pid_t first) {
    first_ = first;
    tracees_.add_first(first);
    int status = 0;
    for (auto pid = wait(status); pid > 0; pid = wait(status)) {
      handle(pid, status);
      if (const auto limit = calls_.take_limit(); !limit.empty()) stop(limit);
    }
    return result_;
  }

 private:
  /// The next stop of any process; 0 if none is left. Kills all at a limit.
  pid_t wait(int& status) {
    for (;;) {
      check_limits();
      const auto pid = ::waitpid(-1, &status, __WALL | WNOHANG);
      if (pid > 0) return pid;
      if (pid < 0 && errno == ECHILD) return 0;
      calls_.send_signals();
      const auto signals = waited_for();
      const timespec glance{0, std::chrono::nanoseconds(tracees_.glance()).count()};
      const int signal = ::sigtimedwait(&signals, nullptr, &glance);
      if (signal < 0) tracees_.release_those_who_wait();
      tracees_.look_for_idleness(signal < 0);
      if (signal > 0 && signal != SIGCHLD) {
        result_.signal = signal;
        stop("signal");
      }
    }
  }

  void check_limits() {
    constexpr auto kBetween = std::chrono::milliseconds(50);
    const auto now = Clock::now();
    if (now < next_check_) return;
    next_check_ = now + kBetween;
    if (!result_.stopped.empty() || result_.cut)
      return tracees_.kill_all();  // including those that were created meanwhile
    if (now >= end_) stop("time");
    tracees_.look_for_busy_loop();
    if (tracees_.resident_bytes() > program_.limits.memory) stop("memory");
    if (layer_.size() > program_.limits.space) stop("space");
  }

  void stop(const std::string& limit) {
    if (first_ended_ && (limit == "time" || limit == "waits"))
      result_.cut = true;
    else if (result_.stopped.empty())
      result_.stopped = limit;
    tracees_.kill_all();
  }

  void handle(pid_t pid, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) return at_end(pid, status);
    if (!WIFSTOPPED(status)) return;
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    auto& process = tracees_.of(pid);
    constexpr int kEndOfCall = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
    if (event == PTRACE_EVENT_SECCOMP) {
      calls_.at_entry(pid);
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
      at_fork(pid);
    } else if (event == PTRACE_EVENT_EXIT && !first_ended_ && pid != first_ && ignores_interrupts(pid)) {
      tracees_.hold_end(pid);
    } else if (event != 0) {
      if (event == PTRACE_EVENT_EXEC && watcher_.may_be_ahead()) hide_vdso(pid);
      resume(pid, 0);
    } else if (signal == kEndOfCall) {
      calls_.at_exit(pid);
    } else if (!process.born && (signal == SIGSTOP || signal == SIGTRAP)) {  // of the attach
      process.born = true;
      if (process.announced) resume(pid, 0);
    } else {
      resume(pid, signal == SIGTRAP ? 0 : signal);
    }
  }

  void at_end(pid_t pid, int status) {
    tracees_.remove(pid);
    calls_.on_end(pid);
    watcher_.on_end(pid, status);
    if (pid != first_) return;
    result_.status = status;
    // What is left runs in the background, and would end with the job.
    first_ended_ = true;
    while (tracees_.let_one_end()) {
    }
    end_ = std::min(end_, Clock::now() + kForTheRest);
  }

  void at_fork(pid_t pid) {
    unsigned long message = 0;
    ::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &message);
    const auto child = static_cast<pid_t>(message);
    watcher_.on_fork(pid, child);
    tracees_.add(child, pid);
    if (tracees_.count() > program_.limits.processes) stop("processes");
  }

  static constexpr std::chrono::milliseconds kForTheRest{500};

  const GuardedProgram& program_;
  ScratchLayer& layer_;
  Watcher& watcher_;
  Tracees tracees_;
  Calls calls_{layer_, watcher_, tracees_, program_.limits};
  Clock::time_point end_;
  Clock::time_point next_check_{};
  pid_t first_ = 0;
  bool first_ended_ = false;
  GuardedEnd result_;
};

enum class Step { trace, filter, start };

/// What the child reports if it cannot start.
struct Trouble {
  Step step = Step::trace;
  int error = 0;
};

std::string_view words_of(Step step) {
  switch (step) {
    case Step::trace:
      return "be traced (PTRACE_TRACEME)";
    case Step::filter:
      return "load a seccomp filter";
    case Step::start:
      break;
  }
  return "start bash";
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

/// What the child does until it executes bash; it allocates no memory.
struct Beginning {
  const GuardedProgram& program;
  const ScratchLayer& layer;
  const std::vector<sock_filter>& filter;
  char* const* argv;
  char* const* environment;
  int report;

  [[noreturn]] void run() const {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int out = program.out < 0 ? null : program.out;
    ::dup2(program.in < 0 ? null : program.in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    sys::close_on_exec_from(STDERR_FILENO + 1);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    if (::chdir(program.folder.c_str()) != 0) (void)!::chdir("/");
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) fail(Step::trace, errno);
    ::raise(SIGSTOP);  // waits until the tracer has set its options
    if (const int error = confine_self(filter, layer.folder(), layer.permitted()); error != 0)
      fail(Step::filter, error);
    ::execve(argv[0], argv, environment);
    fail(Step::start, errno);
  }

  [[noreturn]] void fail(Step step, int error) const {
    const Trouble trouble{step, error};
    (void)!::write(report, &trouble, sizeof(trouble));
    constexpr int kNotStarted = 127;
    ::_exit(kNotStarted);
  }
};

}  // namespace

HeldSignals::HeldSignals() {
  const auto signals = waited_for();
  ::sigprocmask(SIG_BLOCK, &signals, &before_);
}

HeldSignals::~HeldSignals() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Result<GuardedEnd> run_guarded(const GuardedProgram& program, ScratchLayer& layer, Watcher& watcher) {
  auto pipe = sys::make_pipe();
  if (!pipe) return std::unexpected(pipe.error());
  const auto filter = make_filter();
  if (!filter) return std::unexpected(filter.error());
  const auto argv = pointers(program.argv);
  const auto environment = pointers(program.environment);
  const HeldSignals held;
  const auto pid = ::fork();
  if (pid == 0) Beginning{program, layer, *filter, argv.data(), environment.data(), pipe->write.get()}.run();
  const int fork_error = errno;
  pipe->write.reset();
  GuardedEnd end;
  int status = 0;
  if (pid > 0 && ::waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
    constexpr auto kOptions = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                              PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL |
                              PTRACE_O_TRACESYSGOOD;
    const auto options = kOptions | (watcher.lists_jobs() ? PTRACE_O_TRACEEXIT : 0);
    ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, options);
    ::ptrace(PTRACE_CONT, pid, nullptr, 0);
    end = Tracer(program, layer, watcher).follow(pid);
  }
  if (pid < 0) return failure("shell.fork", "cannot start a process: {}", std::strerror(fork_error));
  Trouble trouble;
  if (::read(pipe->read.get(), &trouble, sizeof(trouble)) == sizeof(trouble)) {
    return failure("shell.guard",
                   "nlaunch runs a script to see what it starts, but only inside a sandbox: this process "
                   "cannot {} ({})",
                   words_of(trouble.step), std::strerror(trouble.error));
  }
  return end;
}

}  // namespace nlaunch::shell
