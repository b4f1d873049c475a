#include "sys/proc_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = 4U << 20U;

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t ticks(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string one_line(pid_t pid, const std::string& name) {
  return std::string(text::trim(read_proc_file(pid, name).value_or("")));
}

std::optional<ThreadInfo> thread_info(pid_t pid, pid_t tid) {
  const auto folder = fmt::format("task/{}/", tid);
  const auto stat = read_proc_file(pid, folder + "stat");
  if (!stat) return std::nullopt;
  // The name is in parentheses and may itself contain parentheses and blanks.
  const auto open = stat->find('(');
  const auto close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 > stat->size())
    return std::nullopt;
  const auto fields = text::split(std::string_view(*stat).substr(close + 2), ' ');  // from field 3 of proc(5)
  constexpr std::size_t kUser = 11;
  constexpr std::size_t kKernel = 12;
  if (fields.size() <= kKernel || fields[0].empty()) return std::nullopt;
  auto channel = one_line(pid, folder + "wchan");
  if (channel == "0") channel.clear();
  return ThreadInfo{tid, fields[0][0], stat->substr(open + 1, close - open - 1),
                    ticks(fields[kUser]) + ticks(fields[kKernel]), std::move(channel)};
}

}  // namespace

std::optional<std::string> read_proc_file(pid_t pid, const std::string& name) {
  auto content = read_regular_file(fmt::format("/proc/{}/{}", pid, name), kLargest);
  if (!content) return std::nullopt;
  return std::move(*content);
}

std::vector<ThreadInfo> threads_of(pid_t pid) {
  std::vector<ThreadInfo> threads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    const auto tid = number(entry.path().filename().string());
    if (!tid) continue;
    if (auto info = thread_info(pid, *tid)) threads.push_back(std::move(*info));
  }
  std::ranges::sort(threads, {},
                    [pid](const auto& thread) { return std::pair(thread.tid != pid, thread.tid); });
  return threads;
}

std::string system_call(pid_t pid) {
  return one_line(pid, "syscall");
}

std::string kernel_stack(pid_t pid) {
  return one_line(pid, "stack");
}

std::vector<std::pair<int, std::string>> open_files(pid_t pid) {
  std::vector<std::pair<int, std::string>> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    const auto fd = number(entry.path().filename().string());
    std::error_code gone;
    const auto target = fs::read_symlink(entry.path(), gone);
    if (fd && !gone) files.emplace_back(*fd, target.string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace nlaunch::sys
