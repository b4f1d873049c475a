#include "record/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace nlaunch::record {
namespace {

std::unexpected<Diagnostics> cannot_write(const std::filesystem::path& path) {
  return failure("bundle.write", "cannot write '{}': {}", path.string(), std::strerror(errno));
}

}  // namespace

Result<NamelessFile> NamelessFile::make(const std::filesystem::path& folder) {
  sys::UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return NamelessFile(std::move(fd), "");
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return cannot_write(folder);
  auto temporary = (folder / ".nlaunch-bundle.tar.zst-XXXXXX").string();
  fd = sys::UniqueFd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return cannot_write(folder);
  return NamelessFile(std::move(fd), temporary);
}

NamelessFile::~NamelessFile() {
  if (fd_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> NamelessFile::name(const std::filesystem::path& path) {
  if (temporary_.empty()) {
    // A link cannot replace a file, and a rename needs a name: open(2), O_TMPFILE.
    temporary_ = (path.parent_path() / fmt::format(".{}-{}", path.filename().string(), ::getpid())).string();
    ::unlink(temporary_.c_str());
    const auto self = fmt::format("/proc/self/fd/{}", fd_.get());
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return cannot_write(path);
  }
  if (::rename(temporary_.c_str(), path.c_str()) != 0) return cannot_write(path);
  temporary_.clear();
  return {};
}

bool Spool::write(std::string_view content) {
  size_ += content.size();
  sum_.feed(content);
  return sys::write_all(file_.fd(), content);
}

bool Spool::drain(const std::function<bool(std::string_view)>& sink) {
  std::array<char, 65536> block;
  if (::lseek(file_.fd(), 0, SEEK_SET) != 0) return false;
  for (auto left = size_; left > 0;) {
    const auto got = ::read(file_.fd(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !sink({block.data(), static_cast<std::size_t>(got)})) return false;
    left -= static_cast<std::uint64_t>(got);
  }
  size_ = 0;
  sum_ = {};
  return ::ftruncate(file_.fd(), 0) == 0 && ::lseek(file_.fd(), 0, SEEK_SET) == 0;
}

}  // namespace nlaunch::record
