#include "shell/calls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "shell/words.h"
#include "sys/proc_threads.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

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

int descriptor(const Registers& registers, int index) {
  return static_cast<int>(argument(registers, index));
}

/// Sets a result and skips the call.
void pretend(pid_t pid, Tracee& process, Registers registers, long result) {
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
void hand_over(pid_t pid, Tracee& process, const Registers& registers, Room at, const std::string& text) {
  const auto size = std::min<Word>(text.size(), argument(registers, at.size));
  if (text.ends_with('\0') && size < text.size()) return pretend(pid, process, registers, -ERANGE);
  const bool given = write_memory(pid, argument(registers, at.room), {text.data(), size});
  pretend(pid, process, registers, given ? static_cast<long>(size) : -EFAULT);
}

void make_changed_call(pid_t pid, Tracee& process, const Registers& before, const Registers& registers) {
  if (!set_registers(pid, registers)) ::kill(pid, SIGKILL);
  process.restore = before;
  resume_to_end_of_call(pid);
}

constexpr const char* kNoPeer = "/dev/null";  ///< accepts writes, and has nothing to read

struct Peer {
  std::string host;
  std::uint16_t port = 0;
};
/// Of IPv4 and IPv6.
std::optional<Peer> read_address(pid_t pid, Word from) {
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

/// Writes the text into the process's memory and sets the argument; false on failure.
bool put(pid_t pid, Registers& registers, int argument_index, const std::string& text, int index) {
  const auto place = room_for_path(registers, index);
  if (text.size() >= PATH_MAX || !write_memory(pid, place, {text.c_str(), text.size() + 1})) return false;
  set_argument(registers, argument_index, place);
  return true;
}

Access access_of(const Registers& registers, const WatchedCall& call) {
  if (call.open_flags < 0) return call.path.access;
  const auto flags = static_cast<int>(argument(registers, call.open_flags));
  if ((flags & O_PATH) != 0) return Access::read;
  if ((flags & O_TMPFILE) == O_TMPFILE) return Access::create;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Access::create;
  if ((flags & O_TRUNC) != 0) return Access::replace;
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0 ? Access::write : Access::read;
}

bool follows(const Registers& registers, const WatchedCall& call) {
  const auto has = [&](int index, int flag) {
    return index >= 0 && (static_cast<int>(argument(registers, index)) & flag) != 0;
  };
  if (call.open_flags >= 0)
    return !has(call.open_flags, O_NOFOLLOW) &&
           !(has(call.open_flags, O_CREAT) && has(call.open_flags, O_EXCL));
  return call.follows && !has(call.at_flags, AT_SYMLINK_NOFOLLOW);
}

/// A file or directory that need not exist yet.
bool makes(const Registers& registers, const WatchedCall& call, Access access) {
  if (call.open_flags >= 0) return (argument(registers, call.open_flags) & Word{O_CREAT}) != 0;
  return access == Access::create || access == Access::replace;
}

Missing asked_for(const WatchedCall& call) {
  return call.goes_there ? Missing::folder : call.open_flags >= 0 ? Missing::file : Missing::name;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

}  // namespace

void Calls::at_entry(pid_t pid) {
  auto& process = tracees_.of(pid);
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
void Calls::at_clock(pid_t pid, Tracee& process, const Registers& registers) {
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

void Calls::at_socket(pid_t pid, Tracee& process, const Registers& before) {
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

void Calls::at_connection(pid_t pid, Tracee& process, const Registers& registers) {
  const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, 0)));
  const auto peer = file == kNoPeer ? read_address(pid, argument(registers, 1)) : std::nullopt;
  const bool answers = !peer || watcher_.on_connection(pid, peer->host, peer->port);
  pretend(pid, process, registers, answers ? 0 : -ECONNREFUSED);
}

/// The file of a descriptor.
bool Calls::is_of_layer(pid_t pid, const Registers& registers, int index) const {
  const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, index)));
  return layer_.unmapped(file) != file;
}

void Calls::at_exit(pid_t pid) {
  auto& process = tracees_.of(pid);
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
std::expected<fs::path, int> Calls::path_of(pid_t pid, const Registers& registers, const PathArgument& at,
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
bool Calls::is_of_other_process(const fs::path& path) const {
  constexpr std::string_view kFolder = "/proc/";
  const std::string_view text = path.native();
  if (!text.starts_with(kFolder)) return false;
  const auto name = text.substr(kFolder.size(), text.find('/', kFolder.size()) - kFolder.size());
  const auto pid = text::whole_number<pid_t>(name);
  return pid && !tracees_.has(*pid);
}

void Calls::at_path(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call) {
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

/// A new link leads into the layer.
void Calls::at_link(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call) {
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

void Calls::at_read_link(pid_t pid, Tracee& process, const Registers& registers, const WatchedCall& call) {
  const auto path = path_of(pid, registers, call.path, false);
  if (!path) return path.error() == 0 ? resume(pid, 0) : pretend(pid, process, registers, -path.error());
  const auto where = layer_.map(*path, Access::read);
  std::error_code error;
  const auto target = fs::read_symlink(where.value_or(*path), error);
  if (error) return pretend(pid, process, registers, -error.value());
  hand_over(pid, process, registers, {.room = call.path.path + 1, .size = call.path.path + 2},
            layer_.unmapped(target).native());
}

void Calls::at_code(pid_t pid, Tracee& process, const Registers& registers) {
  constexpr int kFlags = 3;
  constexpr int kFile = 4;
  if ((argument(registers, kFlags) & MAP_ANONYMOUS) != 0) return resume(pid, 0);
  const auto file = link_of(fmt::format("/proc/{}/fd/{}", pid, descriptor(registers, kFile)));
  return layer_.unmapped(file) == file && may_be_mapped(file) ? resume(pid, 0)
                                                              : pretend(pid, process, registers, -EACCES);
}

/// They can signal their own group and each other; no other process appears to exist.
void Calls::at_signal(pid_t pid, Tracee& process, const Registers& registers) {
  const auto target = static_cast<pid_t>(argument(registers, 0));
  const bool own = target == 0 || tracees_.has(target) || (target < -1 && tracees_.has(-target));
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
  if (own && number == 0) tracees_.let_end(target);  // a script that polls
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

void Calls::at_start(pid_t pid, Tracee& process, const Registers& before, const WatchedCall& call) {
  if (++starts_ > most_starts_) over_ = "starts";
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
  if (over_.empty() && watcher_.has_seen_enough()) over_ = "waits";
  if (program.empty()) return pretend(pid, process, before, -ENOENT);
  hide_loader_variables(pid, environment);
  if (!put(pid, registers, call.path.path, program, 0) || !set_registers(pid, registers))
    return pretend(pid, process, before, -EACCES);
  // Meanwhile one of those in the background has ended.
  if (program_name(start.path) == "sleep")
    tracees_.let_one_end_before(pid);
  else
    resume(pid, 0);
  // env becomes the program. What computes a word of a command, `$(date)`, is not yet the command.
  if (is_shell(program) || program_name(program) == "env") return;
  if (watcher_.has_begun())
    tracees_.release_all_above(pid);
  else
    tracees_.release(pid);
}

void Calls::send_signals() {
  const auto now = Clock::now();
  std::erase_if(signals_, [&](const Signal& one) {
    if (now < one.due) return false;
    if (tracees_.has(one.pid)) ::kill(one.pid, one.number);
    return true;
  });
}

}  // namespace nlaunch::shell
