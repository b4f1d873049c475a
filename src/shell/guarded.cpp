#include "shell/guarded.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "shell/confine.h"
#include "shell/tracee.h"
#include "shell/words.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/proc_threads.h"
#include "sys/spawn.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string link_of(const std::string& link) {
  std::error_code error;
  return fs::read_symlink(link, error).native();
}

/// True for a system library: in a library directory, owned by root, and not writable by others.
bool may_be_mapped(const std::string& path) {
  constexpr std::array<std::string_view, 7> kFolders{"/usr/",  "/lib/",       "/lib64/",    "/bin/",
                                                     "/sbin/", "/nix/store/", "/gnu/store/"};
  struct stat info {};
  return std::ranges::any_of(kFolders, [&](auto folder) { return path.starts_with(folder); }) &&
         ::stat(path.c_str(), &info) == 0 && info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// What may be opened although it is neither a file nor a directory: reading a foreign FIFO consumes its
/// data, and opening some devices has side effects.
bool may_be_opened(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kDevices{"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                                     "/dev/urandom"};
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) ||
         path.native().starts_with("/proc/") || std::ranges::find(kDevices, path.native()) != kDevices.end();
}

/// Variables that the loader obeys. With a different first letter, they pass through the programs that run
/// here.
bool is_of_loader(std::string_view entry, char first) {
  constexpr std::array<std::string_view, 3> kNames{"D_PRELOAD=", "D_LIBRARY_PATH=", "D_AUDIT="};
  return !entry.empty() && entry[0] == first &&
         std::ranges::any_of(kNames, [&](auto name) { return entry.substr(1).starts_with(name); });
}

/// Renames them in an environment in a process's memory.
void hide_loader_variables(pid_t pid, Word environment) {
  for (std::uint64_t pointer = 0;
       read_memory(pid, environment, {reinterpret_cast<char*>(&pointer), sizeof(pointer)}) && pointer != 0;
       environment += sizeof(pointer)) {
    const auto entry = read_text(pid, pointer);
    constexpr char kHidden = 'N';
    if (entry && is_of_loader(*entry, 'L')) write_memory(pid, pointer, {&kHidden, 1});
  }
}

std::uint64_t resident_bytes(pid_t pid) {
  const auto pages = text::split(sys::read_proc_file(pid, "statm").value_or(""), ' ');
  const auto resident = pages.size() > 1 ? text::whole_number<std::uint64_t>(pages[1]) : std::nullopt;
  return resident.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

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
    processes_[first] = {.born = true, .announced = true};
    int status = 0;
    for (auto pid = wait(status); pid > 0; pid = wait(status)) handle(pid, status);
    return result_;
  }

 private:
  struct Process {
    bool born = false;                   ///< it has stopped once, as every new child does
    bool announced = false;              ///< its parent's fork has been seen; it is held until then
    std::optional<Registers> restore{};  ///< at the exit of the call
    std::optional<long> pretended{};     ///< the result of a call that is not made
    std::optional<Word> told_time{};     ///< where the call puts the seconds
  };

  /// A signal that arrives late.
  struct Signal {
    pid_t pid = 0;
    int number = 0;
    Clock::time_point due;
  };

  /// The next stop of any process; 0 if none is left. Kills all at a limit.
  pid_t wait(int& status) {
    for (;;) {
      check_limits();
      const auto pid = ::waitpid(-1, &status, __WALL | WNOHANG);
      if (pid > 0) return pid;
      if (pid < 0 && errno == ECHILD) return 0;
      send_signals();
      const auto signals = waited_for();
      const timespec glance{0, held_.empty() && ending_.empty() ? 20'000'000 : 1'000'000};
      const int signal = ::sigtimedwait(&signals, nullptr, &glance);
      if (signal < 0) release_who_wait();
      // What waits for a moment only is not seen twice.
      constexpr int kLooks = 3;
      idle_looks_ = signal < 0 && !ending_.empty() && all_wait() ? idle_looks_ + 1 : 0;
      if (idle_looks_ == kLooks) (void)let_one_end();
      if (signal > 0 && signal != SIGCHLD) {
        result_.signal = signal;
        stop("signal");
      }
    }
  }

  void send_signals() {
    const auto now = Clock::now();
    std::erase_if(signals_, [&](const Signal& one) {
      if (now < one.due) return false;
      if (processes_.contains(one.pid)) ::kill(one.pid, one.number);
      return true;
    });
  }

  void check_limits() {
    constexpr auto kBetween = std::chrono::milliseconds(50);
    const auto now = Clock::now();
    if (now < next_check_) return;
    next_check_ = now + kBetween;
    if (!result_.stopped.empty() || result_.cut)
      return kill_all();  // including those that were created meanwhile
    if (now >= end_) stop("time");
    // A loop that looks without a pause.
    constexpr auto kBusy = std::chrono::milliseconds(300);
    if (!ending_.empty() && now > ending_since_ + kBusy) (void)let_one_end();
    std::uint64_t memory = 0;
    for (const auto& [pid, process] : processes_) memory += resident_bytes(pid);
    memory += resident_bytes(::getpid());
    if (memory > program_.limits.memory) stop("memory");
    if (layer_.size() > program_.limits.space) stop("space");
  }

  void stop(const char* limit) {
    const std::string_view reason = limit;
    if (first_ended_ && (reason == "time" || reason == "waits"))
      result_.cut = true;
    else if (result_.stopped.empty())
      result_.stopped = limit;
    kill_all();
  }

  void kill_all() const {
    for (const auto& [pid, process] : processes_) ::kill(pid, SIGKILL);
  }

  /// A parent continues once its child, or what that forked, has started a program other than a shell or env,
  /// or the child has exited or waits for something. This way a background server has started before the
  /// script queries it, and commands keep the script's order.
  std::optional<pid_t> release(pid_t child) {
    const auto parent = held_.find(child);
    if (parent == held_.end()) return std::nullopt;
    const auto pid = parent->second;
    held_.erase(parent);
    if (processes_.contains(pid)) resume(pid, 0);
    return pid;
  }

  void release_all_above(pid_t child) {
    for (std::optional<pid_t> pid = child; pid;) pid = release(*pid);
  }

  /// True if a process that it has forked, or one below that, still runs: `$(date)` of its command.
  [[nodiscard]] bool runs_others(pid_t pid) const {
    return std::ranges::any_of(processes_, [&](const auto& one) {
      for (auto at = parents_.find(one.first); at != parents_.end(); at = parents_.find(at->second))
        if (at->second == pid) return true;
      return false;
    });
  }

  void release_who_wait() {
    constexpr auto kLongest = std::chrono::milliseconds(300);
    std::vector<pid_t> waiting;
    for (const auto& [child, parent] : held_) {
      const auto info = sys::process_info(child);
      const bool sleeps = !info || info->state == 'S' || info->state == 'Z';
      if (sleeps && (!runs_others(child) || Clock::now() > born_.at(child) + kLongest))
        waiting.push_back(child);
    }
    for (const auto child : waiting) release(child);
    for (auto& [pid, process] : processes_) {  // whose parent was killed before it could report its fork
      if (!process.born || process.announced) continue;
      process.announced = true;
      resume(pid, 0);
    }
  }

  /// True if nothing happens any more until a process that is to end does.
  [[nodiscard]] bool all_wait() const {
    return std::ranges::all_of(processes_, [&](const auto& one) {
      const auto info = sys::process_info(one.first);
      return is_ending(one.first) || !info || info->state == 'S' || info->state == 'Z';
    });
  }

  [[nodiscard]] bool is_ending(pid_t pid) const { return std::ranges::find(ending_, pid) != ending_.end(); }

  /// The first that was started; nullopt if there is none.
  std::optional<pid_t> let_one_end() {
    const auto first = std::ranges::min_element(ending_, {}, [&](pid_t pid) {
      const auto born = born_.find(pid);
      return born == born_.end() ? Clock::time_point() : born->second;
    });
    if (first == ending_.end()) return std::nullopt;
    const auto pid = *first;
    let_end(pid);
    return pid;
  }

  void let_end(pid_t pid) {
    if (std::erase(ending_, pid) > 0) resume(pid, 0);
    ending_since_ = Clock::now();
    idle_looks_ = 0;
  }

  static void resume(pid_t pid, int signal) { ::ptrace(PTRACE_CONT, pid, nullptr, signal); }
  static void resume_to_end_of_call(pid_t pid) { ::ptrace(PTRACE_SYSCALL, pid, nullptr, 0); }

  void handle(pid_t pid, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) return at_end(pid, status);
    if (!WIFSTOPPED(status)) return;
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    auto& process = processes_[pid];
    constexpr int kEndOfCall = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
    if (event == PTRACE_EVENT_SECCOMP) {
      at_call(pid, process);
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
      at_fork(pid);
    } else if (event == PTRACE_EVENT_EXIT && !first_ended_ && pid != first_ && ignores_interrupts(pid)) {
      ending_.push_back(pid);
      ending_since_ = Clock::now();
      release(pid);  // the shell that has forked it
    } else if (event != 0) {
      if (event == PTRACE_EVENT_EXEC && watcher_.may_be_ahead()) hide_vdso(pid);
      resume(pid, 0);
    } else if (signal == kEndOfCall) {
      after_call(pid, process);
    } else if (!process.born && (signal == SIGSTOP || signal == SIGTRAP)) {  // of the attach
      process.born = true;
      if (process.announced) resume(pid, 0);
    } else {
      resume(pid, signal == SIGTRAP ? 0 : signal);
    }
  }

  void at_end(pid_t pid, int status) {
    release(pid);
    std::erase(ending_, pid);
    if (const auto sleeper = sleepers_.find(pid); sleeper != sleepers_.end()) {
      if (processes_.contains(sleeper->second)) resume(sleeper->second, 0);
      sleepers_.erase(sleeper);
    }
    processes_.erase(pid);
    parents_.erase(pid);
    born_.erase(pid);
    ended_.emplace(pid, 0);
    watcher_.on_end(pid, status);
    if (pid != first_) return;
    result_.status = status;
    // What is left runs in the background, and would end with the job.
    first_ended_ = true;
    while (let_one_end()) {
    }
    end_ = std::min(end_, Clock::now() + kForTheRest);
  }

  void at_fork(pid_t pid) {
    unsigned long child_pid = 0;
    ::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child_pid);
    const auto child = static_cast<pid_t>(child_pid);
    auto& born = processes_[child];
    born.announced = true;
    watcher_.on_fork(pid, child);
    if (born.born) resume(child, 0);
    if (processes_.size() > program_.limits.processes) stop("processes");
    held_[child] = pid;
    parents_[child] = pid;
    born_[child] = Clock::now();
  }

  void at_call(pid_t pid, Process& process) {
    Registers registers{};
    if (!get_registers(pid, registers)) {
      ::kill(pid, SIGKILL);  // it is gone, or cannot be controlled
      return;
    }
    const auto* call = watched_call(call_number(registers));
    if (call == nullptr) return pretend(pid, process, registers, -EPERM);
    switch (call->about) {
      case About::start:
        return at_start(pid, process, registers, *call);
      case About::path:
        return at_path(pid, process, registers, *call);
      case About::link:
        return at_link(pid, process, registers, *call);
      case About::read_link:
        return at_read_link(pid, process, registers, *call);
      case About::folder: {
        const auto folder = layer_.unmapped(link_of(fmt::format("/proc/{}/cwd", pid))).native();
        return hand_over(pid, process, registers, {.room = 0, .size = 1}, folder + '\0');
      }
      case About::rights:
        return is_of_layer(pid, registers, 0) ? resume(pid, 0) : pretend(pid, process, registers, 0);
      case About::code:
        return at_code(pid, process, registers);
      case About::signal:
        return at_signal(pid, process, registers);
      case About::limit:
        return argument(registers, 2) == 0 ? resume(pid, 0) : pretend(pid, process, registers, 0);
      case About::socket:
        return at_socket(pid, process, registers);
      case About::connection:
        return at_connection(pid, process, registers);
      case About::clock:
        return at_clock(pid, process, registers);
      case About::pretend:
        return pretend(pid, process, registers, 0);
    }
  }

  /// The time of day, in which a `sleep` that took no time has passed.
  void at_clock(pid_t pid, Process& process, const Registers& registers) {
    const int number = call_number(registers);
    const bool of_clock = number == SYS_clock_gettime;
    const auto clock = descriptor(registers, 0);
    if (watcher_.ahead().count() == 0 ||
        (of_clock && clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
      return resume(pid, 0);
    if (!of_clock && number != SYS_gettimeofday) {  // time(2)
      const std::int64_t now = ::time(nullptr) + watcher_.ahead().count();
      const auto to = argument(registers, 0);
      if (to != 0) write_memory(pid, to, {reinterpret_cast<const char*>(&now), sizeof(now)});
      return pretend(pid, process, registers, now);
    }
    process.told_time = argument(registers, of_clock ? 1 : 0);
    process.restore = registers;
    resume_to_end_of_call(pid);
  }

  static constexpr const char* kNoPeer = "/dev/null";  ///< accepts writes, and has nothing to read

  void at_socket(pid_t pid, Process& process, const Registers& before) {
    const auto family = descriptor(before, 0);
    const auto type = descriptor(before, 1);
    constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    if ((family != AF_INET && family != AF_INET6) || (type & ~kFlags) != SOCK_STREAM) return resume(pid, 0);
    auto registers = before;
    set_argument(registers, 0, static_cast<Word>(AT_FDCWD));
    set_argument(registers, 2, static_cast<Word>(O_RDWR | ((type & SOCK_CLOEXEC) != 0 ? O_CLOEXEC : 0)));
    if (!put(pid, registers, 1, kNoPeer, 0)) return pretend(pid, process, before, -EACCES);
    process.restore = before;
    if (!make_other_call(pid, registers, SYS_openat)) ::kill(pid, SIGKILL);
    resume_to_end_of_call(pid);
  }

  void at_connection(pid_t pid, Process& process, const Registers& registers) {
    const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, 0)));
    const auto peer = file == kNoPeer ? read_address(pid, argument(registers, 1)) : std::nullopt;
    const bool answers = !peer || watcher_.on_connection(pid, peer->host, peer->port);
    pretend(pid, process, registers, answers ? 0 : -ECONNREFUSED);
  }

  struct Peer {
    std::string host;
    std::uint16_t port = 0;
  };
  /// Of IPv4 and IPv6.
  static std::optional<Peer> read_address(pid_t pid, Word from) {
    sockaddr_in6 address{};
    std::array<char, INET6_ADDRSTRLEN> text{};
    const auto begin = std::span(reinterpret_cast<char*>(&address), sizeof(sockaddr_in));
    if (!read_memory(pid, from, begin)) return std::nullopt;
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&address);
    const void* host = &ipv4->sin_addr;
    if (address.sin6_family == AF_INET6) {
      if (!read_memory(pid, from, {reinterpret_cast<char*>(&address), sizeof(address)})) return std::nullopt;
      host = &address.sin6_addr;
    }
    if (::inet_ntop(address.sin6_family, host, text.data(), text.size()) == nullptr) return std::nullopt;
    return Peer{text.data(), ntohs(address.sin6_port)};
  }

  /// The file of a descriptor.
  [[nodiscard]] bool is_of_layer(pid_t pid, const Registers& registers, int index) const {
    const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, index)));
    return layer_.unmapped(file) != file;
  }

  static int descriptor(const Registers& registers, int index) {
    return static_cast<int>(argument(registers, index));
  }

  /// Sets a result and skips the call.
  static void pretend(pid_t pid, Process& process, Registers registers, long result) {
    process.pretended = result;
    process.restore = registers;
    if (!make_other_call(pid, registers, kNoCall)) ::kill(pid, SIGKILL);
    resume_to_end_of_call(pid);
  }

  /// The arguments of a buffer.
  struct Room {
    int room;
    int size;
  };
  /// Returns this text and skips the call.
  static void hand_over(pid_t pid, Process& process, const Registers& registers, Room at,
                        const std::string& text) {
    const auto size = std::min<Word>(text.size(), argument(registers, at.size));
    if (text.ends_with('\0') && size < text.size()) return pretend(pid, process, registers, -ERANGE);
    const bool given = write_memory(pid, argument(registers, at.room), {text.data(), size});
    pretend(pid, process, registers, given ? static_cast<long>(size) : -EFAULT);
  }

  void after_call(pid_t pid, Process& process) const {
    Registers now{};
    if (process.restore && get_registers(pid, now)) {
      restore_arguments(now, *process.restore);
      if (process.pretended) set_result(now, *process.pretended);
      set_registers(pid, now);
    }
    std::int64_t seconds = 0;
    const auto text = std::span(reinterpret_cast<char*>(&seconds), sizeof(seconds));
    if (process.told_time && read_memory(pid, *process.told_time, text)) {
      seconds += watcher_.ahead().count();
      write_memory(pid, *process.told_time, text);
    }
    process.restore.reset();
    process.pretended.reset();
    process.told_time.reset();
    resume(pid, 0);
  }

  /// The path in an argument as the process sees it; an errno, or 0 if the call concerns only a descriptor.
  std::expected<fs::path, int> path_of(pid_t pid, const Registers& registers, const PathArgument& at,
                                       bool follows) {
    const auto text = read_text(pid, argument(registers, at.path));
    if (!text) return std::unexpected(argument(registers, at.path) == 0 ? 0 : EFAULT);
    if (text->empty()) return std::unexpected(at.folder < 0 ? ENOENT : 0);
    if (text->size() >= PATH_MAX) return std::unexpected(ENAMETOOLONG);
    fs::path path(*text);
    if (path.is_relative()) {
      const int folder = at.folder < 0 ? AT_FDCWD : descriptor(registers, at.folder);
      const auto base = link_of(folder == AT_FDCWD ? fmt::format("/proc/{}/cwd", pid)
                                                   : fmt::format("/proc/{}/fd/{}", pid, folder));
      if (base.empty()) return std::unexpected(EBADF);
      path = base / path;
    }
    auto resolved = layer_.resolved(path, follows, pid);
    if (resolved && is_of_other_process(*resolved)) return std::unexpected(ENOENT);
    return resolved;
  }

  /// True for a path below /proc of a process that is not guarded.
  [[nodiscard]] bool is_of_other_process(const fs::path& path) const {
    constexpr std::string_view kFolder = "/proc/";
    const std::string_view text = path.native();
    if (!text.starts_with(kFolder)) return false;
    const auto name = text.substr(kFolder.size(), text.find('/', kFolder.size()) - kFolder.size());
    const auto pid = text::whole_number<pid_t>(name);
    return pid && !processes_.contains(*pid);
  }

  /// Writes the text into the process's memory and sets the argument; false on failure.
  static bool put(pid_t pid, Registers& registers, int argument_index, const std::string& text, int index) {
    const auto place = room_for_path(registers, index);
    if (text.size() >= PATH_MAX || !write_memory(pid, place, {text.c_str(), text.size() + 1})) return false;
    set_argument(registers, argument_index, place);
    return true;
  }

  static Access access_of(const Registers& registers, const WatchedCall& call) {
    if (call.open_flags < 0) return call.path.access;
    const auto flags = static_cast<int>(argument(registers, call.open_flags));
    if ((flags & O_PATH) != 0) return Access::read;
    if ((flags & O_TMPFILE) == O_TMPFILE) return Access::create;
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Access::create;
    if ((flags & O_TRUNC) != 0) return Access::replace;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0 ? Access::write : Access::read;
  }

  static bool follows(const Registers& registers, const WatchedCall& call) {
    const auto has = [&](int index, int flag) {
      return index >= 0 && (static_cast<int>(argument(registers, index)) & flag) != 0;
    };
    if (call.open_flags >= 0)
      return !has(call.open_flags, O_NOFOLLOW) &&
             !(has(call.open_flags, O_CREAT) && has(call.open_flags, O_EXCL));
    return call.follows && !has(call.at_flags, AT_SYMLINK_NOFOLLOW);
  }

  /// A file or directory that need not exist yet.
  static bool makes(const Registers& registers, const WatchedCall& call, Access access) {
    if (call.open_flags >= 0) return (argument(registers, call.open_flags) & Word{O_CREAT}) != 0;
    return access == Access::create || access == Access::replace;
  }

  void at_path(pid_t pid, Process& process, const Registers& before, const WatchedCall& call) {
    auto registers = before;
    const auto access = access_of(registers, call);
    const auto path = path_of(pid, registers, call.path, follows(registers, call));
    if (!path) {  // on a descriptor: it may refer to a file of the machine
      if (path.error() == 0 && (access == Access::read || is_of_layer(pid, before, call.path.folder)))
        return resume(pid, 0);
      return pretend(pid, process, before, -path.error());
    }
    auto where = layer_.map(*path, access);
    if (!where && where.error() == ENOENT && makes(registers, call, access) &&
        watcher_.seems_there(path->parent_path()) && layer_.make_folder(path->parent_path()))
      where = layer_.map(*path, access);
    const bool is_missing = where && access == Access::read && !is_there(*where);
    const auto stand_in = is_missing ? watcher_.stand_in(pid, *path, asked_for(call)) : std::string();
    if (!stand_in.empty() && call.goes_there && layer_.make_folder(*path)) {
      where = layer_.map(*path, Access::read);
    } else if (!stand_in.empty() && !call.goes_there) {
      if (call.open_flags >= 0) set_argument(registers, call.open_flags, O_RDONLY);
      where = stand_in;
    }
    const bool opens = call.open_flags >= 0 && (argument(registers, call.open_flags) & Word{O_PATH}) == 0;
    if (where && opens && layer_.unmapped(*where) == *where && !may_be_opened(*where))
      where = std::unexpected(EACCES);
    if (!where && where.error() == ENOENT && call.open_flags >= 0) watcher_.on_no_folder(*path);
    if (!where) return pretend(pid, process, before, -where.error());
    if (layer_.permitted().contains(*where) && call.open_flags >= 0)
      set_argument(registers, call.open_flags, argument(registers, call.open_flags) & ~Word{O_TRUNC});
    if (!put(pid, registers, call.path.path, where->native(), 0))
      return pretend(pid, process, before, -ENAMETOOLONG);
    if (access != Access::read) watcher_.on_change(pid, *path);
    if (call.second) {
      const auto other = path_of(pid, registers, *call.second, false);
      if (!other) return pretend(pid, process, before, -std::max(other.error(), ENOENT));
      if (call.second->access == Access::replace) (void)layer_.map(*path, Access::remove);  // a rename
      const auto target = layer_.map(*other, call.second->access);
      if (!target) return pretend(pid, process, before, -target.error());
      watcher_.on_change(pid, *other);
      if (!put(pid, registers, call.second->path, target->native(), 1))
        return pretend(pid, process, before, -ENAMETOOLONG);
    }
    make_changed_call(pid, process, before, registers);
  }

  static Missing asked_for(const WatchedCall& call) {
    return call.goes_there ? Missing::folder : call.open_flags >= 0 ? Missing::file : Missing::name;
  }

  static void make_changed_call(pid_t pid, Process& process, const Registers& before,
                                const Registers& registers) {
    if (!set_registers(pid, registers)) ::kill(pid, SIGKILL);
    process.restore = before;
    resume_to_end_of_call(pid);
  }

  static bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
  }

  /// A new link leads into the layer.
  void at_link(pid_t pid, Process& process, const Registers& before, const WatchedCall& call) {
    auto registers = before;
    const auto target = read_text(pid, argument(registers, 0));
    const auto path = path_of(pid, registers, call.path, false);
    if (!target || !path)
      return pretend(pid, process, before, path ? -EFAULT : -std::max(path.error(), ENOENT));
    const auto where = layer_.map(*path, Access::create);
    if (!where) return pretend(pid, process, before, -where.error());
    if (!put(pid, registers, call.path.path, where->native(), 0) ||
        !put(pid, registers, 0, layer_.link_target(*path, *target), 1))
      return pretend(pid, process, before, -ENAMETOOLONG);
    make_changed_call(pid, process, before, registers);
  }

  void at_read_link(pid_t pid, Process& process, const Registers& registers, const WatchedCall& call) {
    const auto path = path_of(pid, registers, call.path, false);
    if (!path) return path.error() == 0 ? resume(pid, 0) : pretend(pid, process, registers, -path.error());
    const auto where = layer_.map(*path, Access::read);
    std::error_code error;
    const auto target = fs::read_symlink(where.value_or(*path), error);
    if (error) return pretend(pid, process, registers, -error.value());
    hand_over(pid, process, registers, {.room = call.path.path + 1, .size = call.path.path + 2},
              layer_.unmapped(target).native());
  }

  void at_code(pid_t pid, Process& process, const Registers& registers) {
    constexpr int kFlags = 3;
    constexpr int kFile = 4;
    if ((argument(registers, kFlags) & MAP_ANONYMOUS) != 0) return resume(pid, 0);
    const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, kFile)));
    return layer_.unmapped(file) == file && may_be_mapped(file) ? resume(pid, 0)
                                                                : pretend(pid, process, registers, -EACCES);
  }

  /// They can signal their own group and each other; no other process appears to exist.
  void at_signal(pid_t pid, Process& process, const Registers& registers) {
    const auto target = static_cast<pid_t>(argument(registers, 0));
    const bool own =
        target == 0 || processes_.contains(target) || (target < -1 && processes_.contains(-target));
    const auto number = static_cast<int>(argument(registers, 1));
    constexpr std::array kEnds{SIGTERM, SIGKILL, SIGINT, SIGQUIT, SIGHUP};
    // A stand-in may have exited before it is killed.
    const bool is_own = own || ended_.contains(std::abs(target));
    if (is_own && (target > 0 || target < -1) && std::ranges::find(kEnds, number) != kEnds.end())
      watcher_.on_kill(std::abs(target));
    if (own && target > 0 && number != 0 && watcher_.starts_others(target)) {
      // A program that a script starts in the background and kills at its end would have run for a while by
      // then.
      constexpr auto kGrace = std::chrono::seconds(2);
      signals_.push_back({target, number, Clock::now() + kGrace});
      return pretend(pid, process, registers, 0);
    }
    if (own && number == 0) let_end(target);  // a script that polls
    if (own && target > 0 && watcher_.only_stands_in(target))
      return pretend(pid, process, registers, number != 0 || watcher_.outlives_its_end() ? 0 : -ESRCH);
    if (own) return resume(pid, 0);
    // A server that has exited, because it does not really run, appears to be alive for a while.
    constexpr int kLooks = 3;
    const auto ended = ended_.find(target);
    const bool lives = ended != ended_.end() && (++ended->second <= kLooks || watcher_.never_ends()) &&
                       watcher_.outlives_its_end();
    pretend(pid, process, registers, lives ? 0 : -ESRCH);
  }

  void at_start(pid_t pid, Process& process, const Registers& before, const WatchedCall& call) {
    if (++starts_ > program_.limits.starts) stop("starts");
    auto registers = before;
    const auto path = path_of(pid, registers, call.path, true);
    if (!path) return pretend(pid, process, before, -std::max(path.error(), ENOENT));
    const auto environment = argument(registers, call.path.path + 2);
    ProgramStart start{.pid = pid,
                       .path = *path,
                       .argv = read_texts(pid, argument(registers, call.path.path + 1)),
                       .environment = read_texts(pid, environment),
                       .folder = layer_.unmapped(link_of(fmt::format("/proc/{}/cwd", pid))),
                       .files = {},
                       .background = ignores_interrupts(pid)};
    for (const auto& [fd, file] : sys::open_files(pid)) start.files[fd] = layer_.unmapped(file);
    for (auto* texts : {&start.argv, &start.environment}) {
      for (auto& text : *texts) text = layer_.without_layer(std::move(text));
    }
    for (auto& entry : start.environment) {
      if (is_of_loader(entry, 'N')) entry[0] = 'L';
    }
    const auto program = watcher_.on_start(start);
    if (watcher_.has_seen_enough()) stop("waits");
    if (program.empty()) return pretend(pid, process, before, -ENOENT);
    hide_loader_variables(pid, environment);
    if (!put(pid, registers, call.path.path, program, 0) || !set_registers(pid, registers))
      return pretend(pid, process, before, -EACCES);
    // Meanwhile one of those in the background has ended.
    const auto ends = program_name(start.path) == "sleep" ? let_one_end() : std::nullopt;
    if (ends)
      sleepers_[*ends] = pid;
    else
      resume(pid, 0);
    // env becomes the program. What computes a word of a command, `$(date)`, is not yet the command.
    if (is_shell(program) || program_name(program) == "env") return;
    if (watcher_.has_begun())
      release_all_above(pid);
    else
      release(pid);
  }

  const GuardedProgram& program_;
  ScratchLayer& layer_;
  std::vector<Signal> signals_;
  Watcher& watcher_;
  Clock::time_point end_;
  Clock::time_point next_check_{};
  static constexpr std::chrono::milliseconds kForTheRest{500};
  pid_t first_ = 0;
  bool first_ended_ = false;
  std::map<pid_t, Process> processes_;
  std::map<pid_t, pid_t> held_;  ///< child → its parent, which is held at its fork
  std::map<pid_t, pid_t> parents_;
  std::map<pid_t, Clock::time_point> born_;
  std::map<pid_t, pid_t> sleepers_;  ///< what is let end → the `sleep` that goes on behind that
  Clock::time_point ending_since_{};
  int idle_looks_ = 0;
  std::vector<pid_t> ending_;   ///< what runs in the background, at its exit (Watcher::lists_jobs)
  std::map<pid_t, int> ended_;  ///< how often it has been queried since
  std::size_t starts_ = 0;
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
