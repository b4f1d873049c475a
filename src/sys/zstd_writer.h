#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace nlaunch::sys {

/// Compresses a stream into a descriptor: one frame with a checksum (RFC 8878). Uses some megabytes of
/// memory.
class ZstdWriter {
 public:
  explicit ZstdWriter(int fd);
  ~ZstdWriter();
  ZstdWriter(const ZstdWriter&) = delete;
  ZstdWriter& operator=(const ZstdWriter&) = delete;

  /// False with errno set on a write error.
  bool write(std::string_view data);
  /// Ends the frame.
  bool finish();
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  struct State;
  bool put_out(std::size_t size);

  std::unique_ptr<State> state_;
  std::vector<char> out_;
  int fd_;
  std::uint64_t written_ = 0;
};

}  // namespace nlaunch::sys
