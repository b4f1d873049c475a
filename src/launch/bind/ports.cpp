#include "launch/bind/ports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "sys/tcp_port.h"

namespace nlaunch::launch {

std::string port_folder() {
  return fmt::format("/tmp/nlaunch-ports-{}", ::geteuid());
}

Ports::Ports(const std::string& folder) {
  constexpr mode_t kOwn = 0600;
  if (!sys::make_private_folder(folder)) return;  // somebody else has taken the name
  file_ = sys::UniqueFd(::open((folder + "/ports").c_str(),
                               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, kOwn));
}

bool Ports::lock(std::uint16_t port) {
  if (taken_.contains(port)) return false;  // one's own lock would be granted again
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = port;
  range.l_len = 1;
  if (file_ && ::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) return false;
  taken_.insert(port);
  return true;
}

std::optional<std::uint16_t> Ports::take(std::uint16_t wish) {
  constexpr std::uint16_t kFirst = 20000;
  constexpr std::uint16_t kLast = 31999;
  for (unsigned tries = 0; tries <= kLast - kFirst; ++tries) {
    if (lock(wish) && !sys::try_to_listen(wish)) return wish;
    wish = wish >= kLast ? kFirst : static_cast<std::uint16_t>(wish + 1);
  }
  return std::nullopt;
}

}  // namespace nlaunch::launch
