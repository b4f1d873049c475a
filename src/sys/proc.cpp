#include "sys/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::sys {
namespace {

constexpr std::uint64_t kLargestProcFile = 64U << 20U;

std::optional<std::string> read_proc(pid_t pid, std::string_view what) {
  auto content = read_regular_file(fmt::format("/proc/{}/{}", pid, what), kLargestProcFile);
  if (!content) return std::nullopt;
  return std::move(*content);
}

template <class Number>
Number number(std::string_view text, int base = 10) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::vector<std::string> split_at_nul(const std::optional<std::string>& content) {
  if (!content || content->empty()) return {};
  std::string_view rest = *content;
  if (rest.ends_with('\0')) rest.remove_suffix(1);
  return text::split(rest, '\0');
}

/// "/proc/PID/root" of a process with a different mount namespace or root; else empty.
std::string other_root(pid_t pid) {
  std::error_code error;
  struct stat theirs {};
  struct stat ours {};
  const auto root = fmt::format("/proc/{}/root", pid);
  const auto mounts = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/mnt", pid), error);
  if (error || ::stat(root.c_str(), &theirs) != 0 || ::stat("/", &ours) != 0) return "";
  const bool same_root = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
  return same_root && mounts == std::filesystem::read_symlink("/proc/self/ns/mnt", error) ? "" : root;
}

constexpr std::string_view kVllmServer = "vLLM API server";  // its other processes have titles of their own

/// Processes started by multiprocessing: a worker or its own helper.
bool argument_of_multiprocessing(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument.find("from multiprocessing.") != std::string::npos;
  });
}

}  // namespace

std::string device_text(dev_t device) {
  return fmt::format("{:02x}:{:02x}", major(device), minor(device));
}

std::optional<ProcessInfo> process_info(pid_t pid) {
  // A whole sweep waits for this: one read into a small buffer, which fits every stat file.
  std::array<char, 1024> buffer;
  const UniqueFd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  const auto got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got <= 0) return std::nullopt;
  const std::string_view stat(buffer.data(), static_cast<std::size_t>(got));
  // The name is in parentheses and may itself contain parentheses and blanks.
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat.size())
    return std::nullopt;
  std::array<std::string_view, 26> fields;  // the first is field 3 of proc(5)
  std::string_view rest = stat.substr(close + 2);
  for (auto& field : fields) {
    const auto end = std::min(rest.find(' '), rest.size());
    field = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (fields.front().empty() || fields.back().empty()) return std::nullopt;
  return ProcessInfo{.pid = pid,
                     .parent = number<pid_t>(fields[1]),
                     .state = fields[0][0],
                     .start_ticks = number<std::uint64_t>(fields[19]),
                     .name = std::string(stat.substr(open + 1, close - open - 1)),
                     .group = number<pid_t>(fields[2]),
                     .session = number<pid_t>(fields[3]),
                     .foreground = number<pid_t>(fields[5]),
                     .stack_start = number<std::uint64_t>(fields[25]),
                     .memory_bytes = number<std::uint64_t>(fields[20])};
}

bool in_foreground(const ProcessInfo& process) {
  const bool has_terminal = process.foreground >= 0;  // without one, no shell puts it in the background
  return process.state != 'T' && (!has_terminal || process.foreground == process.group);
}

void for_each_process(const std::function<void(const ProcessInfo&)>& then) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = number<pid_t>(entry->d_name);
    if (pid <= 0) continue;
    if (const auto info = process_info(pid)) then(*info);
  }
}

std::map<pid_t, ProcessInfo> all_processes() {
  std::map<pid_t, ProcessInfo> found;
  for_each_process([&](const ProcessInfo& info) { found.emplace(info.pid, info); });
  return found;
}

ByParent processes_by_parent() {
  ByParent all;
  for_each_process([&](const ProcessInfo& info) { all.emplace(info.parent, info); });
  return all;
}

std::vector<ProcessInfo> descendants(pid_t root) {
  return descendants(root, processes_by_parent());
}

std::vector<ProcessInfo> descendants(pid_t root, const ByParent& all) {
  std::vector<ProcessInfo> found;
  std::vector<pid_t> open{root};
  std::set<pid_t> seen{root};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto [first, last] = all.equal_range(open[i]);
    for (auto child = first; child != last; ++child) {
      if (!seen.insert(child->second.pid).second) continue;
      found.push_back(child->second);
      open.push_back(child->second.pid);
    }
  }
  return found;
}

std::string user_name(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

std::string user_name() {
  return user_name(::getuid());
}

std::optional<uid_t> owner(pid_t pid) {
  struct stat info {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 ? std::optional(info.st_uid) : std::nullopt;
}

bool sees_all_processes() {
  constexpr std::string_view kOfTheHost = "pid:[4026531836]";  // PROC_PID_INIT_INO, linux/proc_ns.h
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error) == kOfTheHost && process_info(1);
}

std::string process_title(const std::vector<std::string>& arguments, const std::string& name) {
  const auto base = [](std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); };
  if (arguments.empty() || arguments.front().empty()) return name;
  const auto first = arguments.front().substr(0, arguments.front().find(' '));
  if (is_telling_title(first)) return first;
  const auto program = base(first);
  const bool interpreter =
      program.starts_with("python") || program == "bash" || program == "sh" || program == "node";
  const bool serves = program == "vllm" && arguments.size() > 1 && arguments[1] == "serve";
  if (serves) return std::string(kVllmServer);
  if (!interpreter) return program;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    const bool module = argument == "-m" && i + 1 < arguments.size();
    if (module && arguments[i + 1].starts_with("vllm.entrypoints.")) return std::string(kVllmServer);
    if (module) return fmt::format("{} -m {}", program, arguments[i + 1]);
    if (argument == "-c") {
      return argument_of_multiprocessing(arguments) ? program + " (multiprocessing)" : program + " -c";
    }
    if (argument.starts_with('-')) continue;
    const auto script = base(argument);
    const bool server = script == "vllm" && i + 1 < arguments.size() && arguments[i + 1] == "serve";
    return server ? std::string(kVllmServer) : script;
  }
  return program;
}

bool is_telling_title(std::string_view title) {
  return title.find("::") != std::string_view::npos || title == "raylet" || title == "gcs_server" ||
         title == kVllmServer;
}

std::vector<std::string> command_line(pid_t pid) {
  return split_at_nul(read_proc(pid, "cmdline"));
}

std::string executable(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
}

std::vector<std::string> initial_environment(pid_t pid) {
  return split_at_nul(read_proc(pid, "environ"));
}

std::optional<std::vector<MappedFile>> mapped_files(pid_t pid) {
  const auto mappings = file_mappings(pid);
  if (!mappings) return std::nullopt;
  return files_of(*mappings);
}

std::vector<MappedFile> files_of(const std::vector<Mapping>& mappings) {
  std::vector<MappedFile> files;
  std::set<std::pair<std::string, std::uint64_t>> seen;
  for (const auto& mapping : mappings) {
    const auto& file = mapping.file;
    if (seen.emplace(file.device, file.inode).second) files.push_back(file);
  }
  return files;
}

std::optional<std::vector<Mapping>> file_mappings(pid_t pid) {
  const auto maps = read_proc(pid, "maps");
  if (!maps) return std::nullopt;
  constexpr std::string_view kDeleted = " (deleted)";
  const auto root = other_root(pid);
  std::vector<Mapping> mappings;
  for (const auto& line : text::split(*maps, '\n')) {
    // address perms offset device inode path
    std::vector<std::string_view> fields;
    std::string_view rest = line;
    while (fields.size() < 5) {
      const auto end = rest.find(' ');
      fields.push_back(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(rest.find_first_not_of(' ', end) == std::string_view::npos
                             ? rest.size()
                             : rest.find_first_not_of(' ', end));
    }
    if (fields.size() < 5 || !rest.starts_with('/')) continue;
    const auto dash = std::min(fields[0].find('-'), fields[0].size() - 1);
    Mapping mapping{
        .start = number<std::uint64_t>(fields[0].substr(0, dash), 16),
        .end = number<std::uint64_t>(fields[0].substr(dash + 1), 16),
        .offset = number<std::uint64_t>(fields[2], 16),
        .executable = fields[1].find('x') != std::string_view::npos,
        .file = {std::string(rest), std::string(fields[3]), number<std::uint64_t>(fields[4]), false, root}};
    auto& file = mapping.file;
    if (file.path.ends_with(kDeleted)) {
      file.deleted = true;
      file.path.resize(file.path.size() - kDeleted.size());
    }
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

}  // namespace nlaunch::sys
