#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace nlaunch::sys {

/// Writes a tar archive, file by file: ustar headers, and pax records for what does not fit into one
/// (POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"). Owners are left out.
class TarWriter {
 public:
  /// Where the bytes go; returns false once they cannot be written.
  using Sink = std::function<bool(std::string_view)>;
  struct File {
    std::string name;  ///< "folder/file", any bytes but NUL
    std::uint64_t size = 0;
    std::int64_t time = 0;  ///< last changed, seconds since 1970
    mode_t mode = 0644;
  };
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  /// Writes the header of the next file. Its content follows: exactly `size` bytes, in any number of writes.
  bool begin(const File& file);
  bool write(std::string_view content);
  /// Writes the end of the archive.
  bool finish();

 private:
  Sink sink_;
  std::uint64_t left_ = 0;     ///< of the content
  std::uint64_t padding_ = 0;  ///< after the content
};

}  // namespace nlaunch::sys
