#include "sys/pidfd.h"

#include <fmt/format.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace nlaunch::sys {
namespace {

/// As in include/uapi/linux/pidfd.h of Linux 6.15, which g++ 12's systems do not have.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
constexpr std::uint64_t kInfoExit = 1U << 3U;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// The last field of /proc/PID/stat, while the process is a zombie.
std::optional<WaitStatus> status_of_zombie(pid_t pid) {
  constexpr std::uint64_t kLargest = 4096;
  const auto stat = read_regular_file(fmt::format("/proc/{}/stat", pid), kLargest);
  if (!stat) return std::nullopt;
  const auto text = text::trim(*stat);
  const auto close = text.rfind(')');
  if (close == std::string::npos || !text.substr(close).starts_with(") Z ")) return std::nullopt;
  const auto last = text.substr(text.rfind(' ') + 1);
  int status = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), status);
  return error == std::errc() ? std::optional(WaitStatus(status)) : std::nullopt;
}

}  // namespace

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::optional<WaitStatus> status_of_ended(int pidfd, pid_t pid) {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (::ioctl(pidfd, kGetInfo, &info) == 0 && (info.mask & kInfoExit) != 0) return WaitStatus(info.exit_code);
  return status_of_zombie(pid);
}

}  // namespace nlaunch::sys
