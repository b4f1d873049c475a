#include "launch/bind/ports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace nlaunch::launch {

std::string port_folder() {
  return fmt::format("/tmp/nlaunch-ports-{}", ::geteuid());
}

PortRange range_beside(const sys::KernelPorts& kernel) {
  constexpr std::uint16_t kLowest = 2000;  // lower ports belong to system services
  constexpr std::uint16_t kHighest = 65535;
  constexpr int kEnough = 1000;
  const PortRange usual;
  const auto [first, last] = kernel.ephemeral;
  if (last < usual.first || usual.last < first) return usual;
  const PortRange below{kLowest, static_cast<std::uint16_t>(first - 1)};
  const PortRange above{static_cast<std::uint16_t>(last + 1), kHighest};
  if (first - kLowest >= kEnough) return below;
  return kHighest - last >= kEnough ? above : usual;
}

Ports::Ports(const std::string& folder, sys::KernelPorts kernel)
    : kernel_(std::move(kernel)), range_(range_beside(kernel_)) {
  constexpr mode_t kOwn = 0600;
  if (!sys::make_private_folder(folder)) return;  // the name belongs to another user
  file_ = sys::UniqueFd(::open((folder + "/ports").c_str(),
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, kOwn));
}

bool Ports::lock(std::uint16_t port) {
  if (taken_.contains(port)) return false;  // our own lock would be granted again
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = port;
  range.l_len = 1;
  if (file_ && ::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) return false;
  taken_.emplace(port, sys::UniqueFd());
  return true;
}

std::optional<std::uint16_t> Ports::take(std::uint16_t wish) {
  const auto [first, last] = range_;
  const auto size = static_cast<unsigned>(last - first) + 1;
  if (kernel_.has(wish)) wish = static_cast<std::uint16_t>(first + wish % size);
  // If the kernel leaves too few ports, one of the kernel's is used anyway.
  for (const bool outside : {true, false}) {
    for (unsigned tries = 0; tries < size; ++tries) {
      if (!(outside && kernel_.has(wish)) && lock(wish) && !sys::try_to_listen(wish)) {
        taken_[wish] = sys::hold_port(wish);
        return wish;
      }
      wish = wish >= last ? first : static_cast<std::uint16_t>(wish + 1);
    }
  }
  return std::nullopt;
}

}  // namespace nlaunch::launch
