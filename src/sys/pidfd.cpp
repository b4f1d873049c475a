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

/// From include/uapi/linux/pidfd.h of Linux 6.15, which systems with g++ 12 do not have.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
constexpr std::uint64_t kInfoExit = 1U << 3U;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// The last field of /proc/PID/stat, while the process is a zombie or is just being reaped.
std::optional<WaitStatus> status_of_zombie(pid_t pid) {
  constexpr std::uint64_t kLargest = 4096;
  const auto stat = read_regular_file(fmt::format("/proc/{}/stat", pid), kLargest);
  if (!stat) return std::nullopt;
  const auto text = text::trim(*stat);
  const auto close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto rest = text.substr(close);
  if (!rest.starts_with(") Z ") && !rest.starts_with(") X ")) return std::nullopt;
  const auto last = text.substr(text.rfind(' ') + 1);
  int status = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), status);
  return error == std::errc() ? std::optional(WaitStatus(status)) : std::nullopt;
}

/// For a process that was reaped; empty before Linux 6.15.
std::optional<WaitStatus> status_of_reaped(int pidfd) {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (::ioctl(pidfd, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return WaitStatus(info.exit_code);
}

}  // namespace

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::optional<WaitStatus> status_of_ended(int pidfd, pid_t pid) {
  if (const auto status = status_of_reaped(pidfd)) return status;
  if (const auto status = status_of_zombie(pid)) return status;
  return status_of_reaped(pidfd);  // its parent may have reaped it in between
}

}  // namespace nlaunch::sys
