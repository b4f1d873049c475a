#include "sys/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <memory>
#include <new>

#include "base/text.h"
#include "sys/blocked_signals.h"
#include "sys/files.h"

namespace nlaunch::sys {
namespace {

constexpr int kAboveStandard = 10;  ///< descriptors from here on do not collide with 0, 1 and 2

/// RLIMIT_NOFILE from before `permit_many_files`, for the children.
std::optional<rlimit> files_before;

/// With the system call itself: glibc reserves signals 32 and 33, and a caller may have them ignored.
void reset_signals() {
  constexpr std::array<unsigned long, 4> kDefault{};  // the kernel's struct sigaction, with SIG_DFL
  constexpr std::size_t kKernelMask = 8;              // bytes
  for (int signal = 1; signal < NSIG; ++signal) {
    ::syscall(SYS_rt_sigaction, signal, kDefault.data(), nullptr, kKernelMask);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool restore_files() {
  return !files_before || ::setrlimit(RLIMIT_NOFILE, &*files_before) == 0;
}

/// What the child does between clone and exec, in the memory of this process. Other threads may hold any
/// lock, including the allocator's: only async-signal-safe calls, no allocation, and nothing of the caller's
/// changes.
struct Child {
  const SpawnRequest& request;
  const char* program;
  char* const* argv;
  char* const* env;
  int null_fd;
  pid_t parent;
  cpu_set_t cpus;

  /// Returns only if the program could not be executed, with errno set.
  void execute() const {
    if (prepare()) ::execve(program, argv, env);
  }

  bool prepare() const {
    if (request.new_session) ::setsid();
    if (request.die_with_parent) {
      if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
      if (::getppid() != parent) ::kill(::getpid(), SIGKILL);  // it died before the line above
    }
    if (request.tracer != 0) ::prctl(PR_SET_PTRACER, request.tracer, 0, 0, 0);  // EINVAL without Yama
    reset_signals();
    if (request.mark && !set_mark(*request.mark)) return false;
    if (!request.cpus.empty() && ::sched_setaffinity(0, sizeof(cpus), &cpus) != 0) return false;
    if (!request.cwd.empty() && ::chdir(request.cwd.c_str()) != 0) return false;
    return redirect() && close_on_exec_from(STDERR_FILENO + 1) && restore_files();
  }

  static bool set_mark(std::uint64_t mark) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_LOCKS, &limit) != 0) return false;
    limit.rlim_cur = std::min<rlim_t>(mark, limit.rlim_max);
    return ::setrlimit(RLIMIT_LOCKS, &limit) == 0;
  }

  bool redirect() const {
    // The descriptors are duplicated to higher numbers first: one may already be 0, 1 or 2.
    int fds[3] = {request.in, request.out, request.err};
    for (int& fd : fds) {
      fd = ::fcntl(fd < 0 ? null_fd : fd, F_DUPFD_CLOEXEC, kAboveStandard);
      if (fd < 0) return false;
    }
    for (int i = 0; i < 3; ++i) {
      if (::dup2(fds[i], i) < 0) return false;
    }
    return true;
  }
};

/// Starts the child and waits until it has executed its program. The failure is an errno. Nothing of this
/// process is copied for the child: it runs in the same memory, while this thread waits (CLONE_VFORK).
std::expected<pid_t, int> start(const Child& child) {
  constexpr std::size_t kStack = 64U << 10U;
  // Shared, so that the reason arrives even from a child with memory of its own.
  void* const memory =
      ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::unexpected(errno);
  const auto unmap = [](void* mapped) { ::munmap(mapped, kStack); };
  const std::unique_ptr<void, decltype(unmap)> stack(memory, unmap);
  struct Attempt {
    const Child& child;
    int reason = 0;  ///< why it could not be executed
  };
  auto& attempt = *new (memory) Attempt{child};
  const auto run = [](void* at) {
    auto& made = *static_cast<Attempt*>(at);
    made.child.execute();
    made.reason = errno;
    constexpr int kNotExecuted = 127;
    ::_exit(kNotExecuted);
    return 0;
  };
  // A handler of this process must not run in the child, in the same memory.
  const BlockedSignals blocked;
#ifdef __SANITIZE_THREAD__
  constexpr int kMemory = 0;  // it keeps state for each thread, which a child in the same memory would change
#else
  constexpr int kMemory = CLONE_VM;
#endif
  const pid_t pid =
      ::clone(run, static_cast<char*>(memory) + kStack, kMemory | CLONE_VFORK | SIGCHLD, &attempt);
  if (pid < 0) return std::unexpected(errno);
  if (attempt.reason == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return std::unexpected(attempt.reason);
}

/// As declared by execve(), which does not write to them.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

/// For a script, the kernel reports "No such file or directory" if the interpreter in its first line does not
/// exist. Empty: that is not the reason.
std::string missing_interpreter(const std::string& program) {
  constexpr std::size_t kLongestLine = 256;  // that the kernel reads
  std::string line(kLongestLine, '\0');
  const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto got = fd ? ::read(fd.get(), line.data(), line.size()) : 0;
  line.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (!line.starts_with("#!")) return {};
  const auto words = text::trim(std::string_view(line).substr(2, line.find('\n') - 2));
  const std::string interpreter(words.substr(0, words.find_first_of(" \t")));
  return !interpreter.starts_with('/') || ::access(interpreter.c_str(), F_OK) == 0 ? "" : interpreter;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return failure("sys.spawn", "the command is empty");
  const auto program = find_program(request.argv[0], env_value(request.env, "PATH"), request.cwd);
  if (!program) return std::unexpected(program.error());
  const UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) return failure("sys.spawn", "cannot open /dev/null: {}", std::strerror(errno));

  const auto argv = pointers(request.argv);
  const auto env = pointers(request.env);
  Child child{.request = request,
              .program = program->c_str(),
              .argv = argv.data(),
              .env = env.data(),
              .null_fd = null_fd.get(),
              .parent = ::getpid(),
              .cpus = {}};
  CPU_ZERO(&child.cpus);
  for (const auto cpu : request.cpus) CPU_SET(cpu, &child.cpus);

  const auto pid = start(child);
  if (pid) return *pid;
  const auto missing = pid.error() == ENOENT ? missing_interpreter(*program) : "";
  if (!missing.empty()) {
    return failure("sys.spawn",
                   "cannot start {}: its first line names the interpreter '{}', which does not exist",
                   *program, text::printable(missing));
  }
  return failure("sys.spawn", "cannot start {}: {}{}", *program, std::strerror(pid.error()),
                 request.cwd.empty() ? "" : fmt::format(" (in {})", request.cwd));
}

/// With the system call itself, which glibc before 2.34 does not wrap. Linux before 5.11 (RHEL 8, SLES 15)
/// does not have it, and old sandboxes refuse it: then one descriptor after the other.
bool close_on_exec_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  // Entries in the kernel's format (struct linux_dirent64, getdents64(2)): opendir() allocates.
  alignas(std::uint64_t) char entries[4096];
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
    for (long at = 0; at < got;) {
      constexpr std::size_t kLength = 16;
      constexpr std::size_t kName = 19;
      const int fd = std::atoi(entries + at + kName);
      if (fd >= first) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      unsigned short length = 0;
      std::memcpy(&length, entries + at + kLength, sizeof(length));
      at += length;
    }
  }
  ::close(folder);
  return got == 0;
}

void become(const std::string& program, const std::vector<std::string>& argv,
            const std::vector<std::string>& env) {
  reset_signals();
  if (!restore_files()) return;
  const auto arguments = pointers(argv);
  const auto variables = pointers(env);
  ::execve(program.c_str(), arguments.data(), variables.data());
}

std::uint64_t permit_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (!files_before) files_before = limit;
  const rlimit most{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &most) == 0 ? most.rlim_cur : limit.rlim_cur;
}

Result<std::string> find_program(std::string_view name, std::string_view path, std::string_view cwd) {
  const auto executable = [](const std::string& file) {
    struct stat info {};
    return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0;
  };
  const auto absolute = [&](std::string_view file) {
    return file.starts_with('/') || cwd.empty() ? std::string(file) : fmt::format("{}/{}", cwd, file);
  };
  if (name.find('/') != std::string_view::npos) {
    const auto file = absolute(name);
    if (executable(file)) return file;
    struct stat info {};
    const bool exists = ::stat(file.c_str(), &info) == 0;
    return failure("sys.program", "'{}' {}", file, exists ? "is not executable" : "does not exist");
  }
  for (const auto& folder : text::split(path, ':')) {
    const auto file = fmt::format("{}/{}", absolute(folder.empty() ? "." : folder), name);
    if (executable(file)) return file;
  }
  return failure("sys.program", "program '{}' was not found in PATH ({})", name,
                 path.empty() ? "which is empty" : path);
}

std::string_view env_value(const std::vector<std::string>& env, std::string_view name) {
  for (const auto& entry : env) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

}  // namespace nlaunch::sys
