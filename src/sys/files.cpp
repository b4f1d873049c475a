#include "sys/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nlaunch::sys {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Pipe> make_pipe(int capacity) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return failure("sys.pipe", "cannot create a pipe: {}", std::strerror(errno));
  Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (capacity > 0) ::fcntl(ends[1], F_SETPIPE_SZ, capacity);
  return made;
}

Result<UniqueFd> open_regular_file(const std::filesystem::path& path, Links links) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::refused ? O_NOFOLLOW : 0);
  UniqueFd fd(::open(path.c_str(), how));
  if (!fd && errno == ELOOP && links == Links::refused)
    return failure("file.kind", "'{}' is a symbolic link, which is not followed", path.string());
  if (!fd) return failure("file.open", "cannot open '{}': {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return failure("file.open", "cannot read '{}': {}", path.string(), std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode))
    return failure("file.kind", "'{}' is {}, not a file", path.string(), kind_of(info.st_mode));
  return fd;
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t limit, Links links) {
  const auto opened = open_regular_file(path, links);
  if (!opened) return std::unexpected(opened.error());
  const auto& fd = *opened;
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) > limit) {
    return failure("file.size", "'{}' has {} bytes, more than the limit of {}", path.string(), info.st_size,
                   limit);
  }
  std::string content;
  // A file in /proc has size 0: read until the end, whatever fstat returned.
  constexpr std::size_t kBlock = 65536;
  for (;;) {
    const auto have = content.size();
    content.resize(have + kBlock);
    const auto got = ::read(fd.get(), content.data() + have, kBlock);
    content.resize(have + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return content;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("file.read", "cannot read '{}': {}", path.string(), std::strerror(errno));
    if (content.size() > limit) {
      return failure("file.size", "'{}' grew beyond the limit of {} bytes", path.string(), limit);
    }
  }
}

bool is_folder_itself(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  return write_file_atomically(
      path, [&](const FileWriter& write) { write(content); }, mode);
}

Result<void> write_file_atomically(const std::filesystem::path& path,
                                   const std::function<void(const FileWriter& write)>& produce, mode_t mode) {
  constexpr std::size_t kAtOnce = 1U << 20U;
  // A pid does not make the name unique: on a shared file system another node may have the same pid.
  auto temporary = path.string() + ".tmp-XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  int problem = fd && ::fchmod(fd.get(), mode) == 0 ? 0 : errno;
  const auto write = [&](std::string_view text) {
    if (problem == 0 && !write_all(fd.get(), text)) problem = errno;
  };
  std::string pieces;
  if (problem == 0) {
    produce([&](std::string_view piece) {
      if (pieces.size() + piece.size() > kAtOnce) write(std::exchange(pieces, {}));
      piece.size() > kAtOnce ? write(piece) : void(pieces += piece);
    });
  }
  write(pieces);
  if (problem == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) problem = errno;
  if (problem == 0) return {};
  if (fd) ::unlink(temporary.c_str());
  return failure("file.write", "cannot write '{}': {}", path.string(), std::strerror(problem));
}

Result<void> write_named_file(const std::filesystem::path& path, std::string_view content) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  std::error_code error;
  if (there && !S_ISREG(info.st_mode)) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (fd && write_all(fd.get(), content)) return {};
    return failure("file.write", "cannot write '{}': {}", path.string(), std::strerror(errno));
  }
  auto target = path;
  constexpr int kMostLinks = 40;  // path_resolution(7)
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, error); ++i)
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  const auto masked = ::umask(0);
  ::umask(masked);
  constexpr mode_t kForAll = 0666;
  const auto mode = there ? info.st_mode & 07777U : kForAll & ~masked;
  return write_file_atomically(target, content, mode);
}

Result<void> make_private_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (!error && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    error.assign(errno, std::generic_category());
  struct stat info {};
  if (!error && ::lstat(path.c_str(), &info) != 0) error.assign(errno, std::generic_category());
  if (error)
    return failure("file.folder", "cannot create the directory '{}': {}", path.string(), error.message());
  // In a directory like /tmp another user may have created a link or a directory there first.
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return failure("file.folder", "'{}' already exists and is not a directory of this user", path.string());
  }
  return {};
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename());
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

std::size_t read_up_to(int fd, std::span<char> room) {
  std::size_t all = 0;
  while (all < room.size()) {
    const auto got = ::read(fd, room.data() + all, room.size() - all);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    all += static_cast<std::size_t>(got);
  }
  return all;
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const auto wrote = ::write(fd, data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    data.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

std::filesystem::path executable_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace nlaunch::sys
