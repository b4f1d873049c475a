#include "launch/ports.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "sys/tcp_port.h"

namespace nlaunch::launch {

std::string lock_folder() {
  return "/tmp/nlaunch-locks";
}

void make_lock_folder(const std::string& folder) {
  constexpr mode_t kEveryoneSticky = 01777;
  if (::mkdir(folder.c_str(), kEveryoneSticky) == 0) ::chmod(folder.c_str(), kEveryoneSticky);
}

Ports::Ports(const std::string& folder) {
  make_lock_folder(folder);
  const auto path = folder + "/ports";
  file_ = sys::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file_ || errno != ENOENT) return;
  constexpr mode_t kEveryone = 0666;
  file_ = sys::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kEveryone));
  if (file_) ::fchmod(file_.get(), kEveryone);  // whatever the umask
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
