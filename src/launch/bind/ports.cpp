#include "launch/bind/ports.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "sys/tcp_port.h"

namespace nlaunch::launch {

std::string lock_folder() {
  return "/tmp/nlaunch-locks";
}

Result<sys::UniqueFd> open_lock_file(const std::string& folder, const std::string& name) {
  constexpr mode_t kEveryone = 0666;
  constexpr mode_t kEveryoneSticky = 01777;
  // Nothing is waited for: opening a FIFO waits for who is at its other end.
  constexpr int kHow = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const auto failed = [&](std::string_view why) {
    return failure("launch.lock", "cannot open the lock {}/{}: {}", folder, name, why);
  };
  if (::mkdir(folder.c_str(), kEveryoneSticky) == 0) ::chmod(folder.c_str(), kEveryoneSticky);
  const sys::UniqueFd where(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!where) return failed(std::strerror(errno));
  // Another user's file may be opened for reading only, and not with O_CREAT in a sticky folder
  // (fs.protected_regular); for flock(2) either will do.
  sys::UniqueFd fd(::openat(where.get(), name.c_str(), O_RDWR | kHow));
  if (!fd) fd = sys::UniqueFd(::openat(where.get(), name.c_str(), O_RDONLY | kHow));
  const bool made = !fd && errno == ENOENT;
  if (made) fd = sys::UniqueFd(::openat(where.get(), name.c_str(), O_RDWR | O_CREAT | kHow, kEveryone));
  if (!fd) return failed(errno == ELOOP ? "it is a link" : std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failed("it is no regular file");
  if (info.st_nlink > 1) return failed("it is another name of a file that may be somebody's");
  if (made) ::fchmod(fd.get(), kEveryone);  // whatever the umask
  return fd;
}

Ports::Ports(const std::string& folder) {
  auto file = open_lock_file(folder, "ports");
  // A lock on a part of a file wants one that can be written to.
  if (file && (::fcntl(file->get(), F_GETFL) & O_ACCMODE) == O_RDWR) file_ = std::move(*file);
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
