#pragma once
#include <filesystem>
#include <functional>

#include "base/diagnostic.h"
#include "base/sha256.h"
#include "sys/files.h"
#include "sys/tar_writer.h"
#include "sys/zstd_writer.h"

namespace nlaunch::record {

/// A file in a folder that has no name yet: until it gets one it vanishes with its descriptor, whatever
/// happens to this process. File systems that have no such thing (NFS) give it a name that begins with a
/// dot, which is removed at the end.
class NamelessFile {
 public:
  static Result<NamelessFile> make(const std::filesystem::path& folder);
  NamelessFile(NamelessFile&& other) noexcept = default;
  NamelessFile& operator=(NamelessFile&&) = delete;
  ~NamelessFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Puts it at `path`, in place of what is there.
  Result<void> name(const std::filesystem::path& path);

 private:
  NamelessFile(sys::UniqueFd fd, std::string temporary)
      : fd_(std::move(fd)), temporary_(std::move(temporary)) {}
  sys::UniqueFd fd_;
  std::string temporary_;  ///< its name; empty: it has none
};

/// What is to become the next file of an archive, whose size and sum must be known before its first byte:
/// kept on disk meanwhile.
class Spool {
 public:
  explicit Spool(NamelessFile file) : file_(std::move(file)) {}
  bool write(std::string_view content);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// 64 hexadecimal digits of what was written.
  std::string sum() { return sum_.finish(); }
  /// Hands all of it on, and begins anew.
  bool drain(const std::function<bool(std::string_view)>& sink);

 private:
  NamelessFile file_;
  std::uint64_t size_ = 0;
  Sha256 sum_;
};

}  // namespace nlaunch::record
