#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::sys {

/// A descriptor that is closed when it goes out of scope.
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
/// `capacity` in bytes is a wish: where the user's pipe pages are used up the pipe stays small.
Result<Pipe> make_pipe(int capacity = 0);

/// Refused in run directories: somebody else may have put a link there that leads to a file of ours.
enum class Links { followed, refused };

/// A regular file, open for reading. A directory, a FIFO or a device is a failure that says so, without
/// blocking; so is a link where these are refused, but not one among the folders above.
Result<UniqueFd> open_regular_file(const std::filesystem::path& path, Links links = Links::followed);
/// The whole of one of at most `limit` bytes; a larger one is a failure, unread.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::uint64_t limit,
                                      Links links = Links::followed);

/// Whether it is a folder, and no link to one.
bool is_folder_itself(const std::filesystem::path& path);

/// Replaces `path` by a file with this content: a reader sees the old or the new one, never a part.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                                   mode_t mode = 0600);

/// Writes a file that somebody named, as a shell's `>` would, whole or not at all: behind a link the file
/// that it leads to; into a device or a FIFO, which is never replaced; with the rights that the umask leaves.
Result<void> write_named_file(const std::filesystem::path& path, std::string_view content);

/// Makes a folder and those above it, mode 0700 for the last. One that is there already must be this user's
/// own, and no link.
Result<void> make_private_folder(const std::filesystem::path& path);

/// The names in a folder, numbers in them by their value: "mlx5_9" before "mlx5_10". A folder that cannot be
/// read has none.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Reads until `room` is full or the file ends, and says how much that is.
std::size_t read_up_to(int fd, std::span<char> room);

/// Writes all of `data`, over short writes and EINTR; false with errno set when it cannot.
bool write_all(int fd, std::string_view data);

/// The path of this executable's folder, links resolved.
std::filesystem::path executable_folder();

}  // namespace nlaunch::sys
