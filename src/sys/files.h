#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::sys {

/// A descriptor that is closed at the end of its scope.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// A pipe, both ends close-on-exec.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
/// `capacity` in bytes is a request: if the user's pipe pages are used up, the pipe stays small.
Result<Pipe> make_pipe(int capacity = 0);

/// Refused in run directories: another user may have put a link there that leads to one of our files.
enum class Links { followed, refused };

/// Opens a regular file for reading. A directory, a FIFO or a device is a failure that says so, without
/// blocking; so is a link if links are refused, except among the directories above.
Result<UniqueFd> open_regular_file(const std::filesystem::path& path, Links links = Links::followed);
/// The complete content of a file of at most `limit` bytes; a larger one is a failure, unread.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t limit,
                                      Links links = Links::followed);

/// Whether it is a directory, and not a link to one.
bool is_folder_itself(const std::filesystem::path& path);

/// Replaces `path` with a file with this content: a reader sees the old or the new one, never a part.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                                   mode_t mode = 0600);
/// As above. `produce` passes the content to its argument, piece by piece.
using FileWriter = std::function<void(std::string_view piece)>;
Result<void> write_file_atomically(const std::filesystem::path& path,
                                   const std::function<void(const FileWriter& write)>& produce,
                                   mode_t mode = 0600);

/// Writes a file that the user named, as a shell's `>` would, but completely or not at all: through a link to
/// its target; into a device or a FIFO, which is never replaced; with the permissions that the umask allows.
Result<void> write_named_file(const std::filesystem::path& path, std::string_view content);

/// Creates a directory and its parents, mode 0700 for the last one. An existing one must belong to this user
/// and not be a link.
Result<void> make_private_folder(const std::filesystem::path& path);

/// The names in a directory, with embedded numbers sorted by value: "mlx5_9" before "mlx5_10". Empty if the
/// directory cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Reads until `room` is full or the file ends; returns the number of bytes.
std::size_t read_up_to(int fd, std::span<char> room);

/// Writes all of `data`, across short writes and EINTR; false with errno set on an error.
bool write_all(int fd, std::string_view data);

/// The directory of this executable, with links resolved.
std::filesystem::path executable_folder();

}  // namespace nlaunch::sys
