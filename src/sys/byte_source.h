#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sys/files.h"

namespace nlaunch::sys {

/// Bytes that are read one after the other.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `room.size()` bytes, and 0 at the end. What could not be read ends it too, and `remark()` says so.
  virtual std::size_t read(std::span<char> room) = 0;
  /// Why it ended before its end, for people; empty where it did not.
  [[nodiscard]] virtual std::string remark() const = 0;
};

/// When to stop reading what does not end by itself.
struct Patience {
  std::chrono::milliseconds longest;
  std::function<bool()> enough = nullptr;  ///< true once a person has had enough; may be nothing
};

/// Opens a file for reading from its beginning; a FIFO is opened without waiting for its writer.
Result<UniqueFd> open_for_reading(const std::filesystem::path& path);

/// The bytes of a descriptor. A pipe, a terminal or a socket is read for as long as `patience` says.
std::unique_ptr<ByteSource> fd_source(UniqueFd fd, Patience patience);

/// The same unpacked, where they begin as gzip or zstd do; several packed parts in a row are one text. What
/// stood before a place that cannot be unpacked is given, and the remark says where it broke.
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed);

/// `first`, then what `rest` has.
std::unique_ptr<ByteSource> prefixed(std::string first, std::unique_ptr<ByteSource> rest);

/// Reads until `room` is full or the source ends; how much it was.
std::size_t read_full(ByteSource& source, std::span<char> room);

}  // namespace nlaunch::sys
