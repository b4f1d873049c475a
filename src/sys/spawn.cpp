#include "sys/spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::sys {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

/// RLIMIT_NOFILE from before `permit_many_files`, for the children.
std::optional<rlimit> files_before;

/// By the system call itself: glibc keeps signals 32 and 33 to itself, and a caller may have them ignored.
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

/// What the child does between fork and exec: async-signal-safe calls only.
struct ChildSetup {
  const SpawnRequest& request;
  int null_fd;
  pid_t parent;
  const char* const* env;
  cpu_set_t cpus;

  template <class Launcher>
  process::error_code on_setup(Launcher& launcher, const process::filesystem::path& /*program*/,
                               const char* const*& /*argv*/) {
    launcher.env = env;
    return {};
  }

  /// Executes the program itself: on failure Boost would call exit() and flush the parent's buffers a second
  /// time.
  template <class Launcher>
  process::error_code on_exec_setup(Launcher& launcher, const process::filesystem::path& program,
                                    const char* const* argv) {
    const int to_parent = launcher.fd_whitelist.back();  // where Boost expects the errno of a failure
    if (prepare()) ::execve(program.c_str(), const_cast<char* const*>(argv), const_cast<char* const*>(env));
    const int reason = errno;
    const bool told = ::write(to_parent, &reason, sizeof(reason)) == sizeof(reason);
    constexpr int kNotExecuted = 127;
    ::_exit(told ? kNotExecuted : EXIT_FAILURE);
  }

  bool prepare() {
    if (request.new_session) ::setsid();
    if (request.die_with_parent) {
      if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
      if (::getppid() != parent) ::raise(SIGKILL);  // it died before the line above
    }
    if (request.tracer != 0) ::prctl(PR_SET_PTRACER, request.tracer, 0, 0, 0);  // EINVAL without Yama
    reset_signals();
    if (request.mark && !set_mark(*request.mark)) return false;
    if (!request.cpus.empty() && ::sched_setaffinity(0, sizeof(cpus), &cpus) != 0) return false;
    if (!request.cwd.empty() && ::chdir(request.cwd.c_str()) != 0) return false;
    return redirect() && restore_files();
  }

  static bool set_mark(std::uint64_t mark) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_LOCKS, &limit) != 0) return false;
    limit.rlim_cur = std::min<rlim_t>(mark, limit.rlim_max);
    return ::setrlimit(RLIMIT_LOCKS, &limit) == 0;
  }

  bool redirect() {
    // The descriptors are moved out of the way first: one may already sit at 0, 1 or 2.
    constexpr int kAbove = 10;
    int fds[3] = {request.in, request.out, request.err};
    for (int& fd : fds) {
      fd = ::fcntl(fd < 0 ? null_fd : fd, F_DUPFD_CLOEXEC, kAbove);
      if (fd < 0) return false;
    }
    for (int i = 0; i < 3; ++i) {
      if (::dup2(fds[i], i) < 0) return false;
    }
    return close_the_rest_on_exec();
  }

  /// By the system call itself, which glibc before 2.34 does not name. Linux before 5.11 (RHEL 8, SLES 15)
  /// does not know it either, and old sandboxes refuse it: then one descriptor after the other.
  static bool close_the_rest_on_exec() {
    constexpr int kFirst = 3;
    if (::syscall(SYS_close_range, kFirst, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
    DIR* open_files = ::opendir("/proc/self/fd");
    if (open_files == nullptr) return false;
    while (const auto* entry = ::readdir(open_files)) {
      const int fd = std::atoi(entry->d_name);
      if (fd >= kFirst) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    ::closedir(open_files);
    return true;
  }
};

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(text.c_str());
  out.push_back(nullptr);
  return out;
}

/// The kernel says of a script "No such file or directory" where it is the interpreter of its first line that
/// is not there. Empty: it is not that.
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
  if (request.argv.empty()) return failure("sys.spawn", "an empty command cannot be started");
  const auto program = find_program(request.argv[0], env_value(request.env, "PATH"), request.cwd);
  if (!program) return std::unexpected(program.error());
  const UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) return failure("sys.spawn", "cannot open /dev/null: {}", std::strerror(errno));

  const auto env = pointers(request.env);
  ChildSetup setup{request, null_fd.get(), ::getpid(), env.data(), {}};
  CPU_ZERO(&setup.cpus);
  for (const auto cpu : request.cpus) CPU_SET(cpu, &setup.cpus);

  asio::io_context context(1);
  process::error_code error;
  const std::vector<std::string> arguments(request.argv.begin() + 1, request.argv.end());
  process::posix::default_launcher launcher;
  pid_t pid = -1;
  try {
    auto child = launcher(context, error, *program, arguments, setup);
    if (!error) pid = child.id();
    child.detach();  // the destructor would kill it
  } catch (const boost::system::system_error& thrown) {
    error = thrown.code();  // Boost 1.81 throws from the overload that takes an error_code
  }
  if (error) {
    if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
    const auto missing = error.value() == ENOENT ? missing_interpreter(*program) : "";
    if (!missing.empty()) {
      return failure("sys.spawn", "cannot start {}: its first line asks for '{}', which does not exist",
                     *program, text::printable(missing));
    }
    return failure("sys.spawn", "cannot start {}: {}{}", *program, error.message(),
                   request.cwd.empty() ? "" : fmt::format(" (in {})", request.cwd));
  }
  return pid;
}

void become(const std::string& program, const std::vector<std::string>& argv,
            const std::vector<std::string>& env) {
  reset_signals();
  if (!restore_files()) return;
  const auto arguments = pointers(argv);
  const auto variables = pointers(env);
  ::execve(program.c_str(), const_cast<char* const*>(arguments.data()),
           const_cast<char* const*>(variables.data()));
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
