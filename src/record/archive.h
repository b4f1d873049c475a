#pragma once
#include <filesystem>
#include <functional>

#include "base/diagnostic.h"
#include "base/sha256.h"
#include "sys/files.h"
#include "sys/tar_writer.h"
#include "sys/zstd_writer.h"

namespace nlaunch::record {

/// A file in a directory that has no name yet: until it is named, it disappears with its descriptor, whatever
/// happens to this process. On file systems that do not support this (NFS), it gets a name that starts with a
/// dot and is removed at the end.
class NamelessFile {
 public:
  static Result<NamelessFile> make(const std::filesystem::path& folder);
  NamelessFile(NamelessFile&& other) noexcept = default;
  NamelessFile& operator=(NamelessFile&&) = delete;
  ~NamelessFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Names it `path`, replacing what is there.
  Result<void> name(const std::filesystem::path& path);

 private:
  NamelessFile(sys::UniqueFd fd, std::string temporary)
      : fd_(std::move(fd)), temporary_(std::move(temporary)) {}
  sys::UniqueFd fd_;
  std::string temporary_;  ///< its temporary name; empty: it has none
};

/// Content of the next file of an archive, whose size and checksum must be known before its first byte: kept
/// on disk until then.
class Spool {
 public:
  explicit Spool(NamelessFile file) : file_(std::move(file)) {}
  bool write(std::string_view content);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Checksum of what was written, as 64 hexadecimal digits.
  std::string sum() { return sum_.finish(); }
  /// Passes on all of the content, and starts over.
  bool drain(const std::function<bool(std::string_view)>& sink);

 private:
  NamelessFile file_;
  std::uint64_t size_ = 0;
  Sha256 sum_;
};

}  // namespace nlaunch::record
