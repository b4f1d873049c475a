#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "sys/files.h"

namespace nlaunch::supervise {

/// A file that is appended to for as long as the run goes on, and whose failure is not the run's: a full disk
/// or a vanished folder is said once, what could not be written is counted.
class AppendedFile {
 public:
  using Trouble = std::function<void(const std::string& sentence)>;

  AppendedFile() = default;
  /// Opens or makes it, mode 0600. A failure goes to `trouble`.
  AppendedFile(std::filesystem::path path, Trouble trouble);

  /// Appends all of it; false when a part could not be written.
  bool append(std::string_view data);
  /// Notices that the file has been removed: what is written then reaches nobody.
  void check();
  [[nodiscard]] std::uint64_t lost_bytes() const { return lost_bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void report(std::string_view what);

  std::filesystem::path path_;
  Trouble trouble_;
  sys::UniqueFd fd_;
  bool reported_ = false;
  std::uint64_t lost_bytes_ = 0;
};

}  // namespace nlaunch::supervise
