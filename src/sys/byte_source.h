#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sys/files.h"

namespace nlaunch::sys {

/// A sequential source of bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `room.size()` bytes, and 0 at the end. A read error also ends it, and `remark()` reports it.
  virtual std::size_t read(std::span<char> room) = 0;
  /// Why it ended early, for the user; empty if it did not.
  [[nodiscard]] virtual std::string remark() const = 0;
};

/// When to stop reading a source that may not end.
struct Patience {
  std::chrono::milliseconds longest;
  std::function<bool()> enough = nullptr;  ///< true once the user wants to stop; may be null
};

/// Opens a file for reading from its start; opening a FIFO does not wait for a writer.
Result<UniqueFd> open_for_reading(const std::filesystem::path& path);

/// The bytes of a descriptor. A pipe, a terminal or a socket is read for as long as `patience` allows.
std::unique_ptr<ByteSource> fd_source(UniqueFd fd, Patience patience);

/// The same, decompressed if it starts as gzip or zstd does; several compressed parts in a row are one text.
/// The content before a damaged part is returned, and the remark says where it broke.
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed);

/// `first`, followed by `rest`.
std::unique_ptr<ByteSource> prefixed(std::string first, std::unique_ptr<ByteSource> rest);

/// Reads until `room` is full or the source ends; returns the number of bytes.
std::size_t read_full(ByteSource& source, std::span<char> room);

}  // namespace nlaunch::sys
