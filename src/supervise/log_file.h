#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sys/files.h"

namespace nlaunch::supervise {

/// A file that is appended to during the whole run and whose failure does not fail the run: a full disk or a
/// removed directory is reported once, and lost bytes are counted.
class AppendedFile {
 public:
  using Trouble = std::function<void(const std::string& sentence)>;

  AppendedFile() = default;
  /// Opens or creates it, mode 0600. A failure is reported to `trouble`.
  AppendedFile(std::filesystem::path path, Trouble trouble);

  /// Appends everything; false if a part could not be written.
  bool append(std::string_view data);
  /// Detects that the file has been removed, so that nobody would see what is written.
  void check();
  [[nodiscard]] std::uint64_t lost_bytes() const { return lost_bytes_; }
  /// Bytes in the file, those of an earlier nlaunch included.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void report(std::string_view what);

  std::filesystem::path path_;
  Trouble trouble_;
  sys::UniqueFd fd_;
  bool reported_ = false;
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t size_ = 0;
};

/// When the bytes of a log were written, in a file of its own: each line has a time (milliseconds since 1970)
/// and the size of the log at that time; at most ten lines a second. The log itself stays as the process
/// wrote it.
class LogTimes {
 public:
  explicit LogTimes(std::filesystem::path path) : file_(std::move(path), nullptr) {}
  /// To be called before something is written to the log, which has this size.
  void note(std::uint64_t size);

 private:
  AppendedFile file_;
  std::optional<std::chrono::steady_clock::time_point> noted_;
};

}  // namespace nlaunch::supervise
