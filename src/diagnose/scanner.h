#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/match.h"
#include "diagnose/prefilter.h"

namespace nlaunch::diagnose {

/// Finds the signatures in a stream, in one pass and in bounded memory: lines that contain a literal of a
/// signature are tried with its pattern, the others are only counted.
class Scanner {
 public:
  explicit Scanner(Listener& listener);

  /// Starts a new stream.
  void begin(std::uint32_t file);
  void feed(std::string_view bytes);
  /// Finishes the stream; its last line need not end in a newline.
  void finish();

  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The number of lines that were too long to be examined in one piece.
  [[nodiscard]] std::uint64_t longest_line() const { return longest_; }

 private:
  /// Scans the first `size` bytes of the buffer and drops the first `done` of them.
  void scan(std::size_t size, std::size_t done);
  void hit(std::string_view region, const Prefilter::Hit& hit);
  void try_signature(std::size_t index, std::string_view line, std::uint64_t offset);
  void tell(const Signature& signature, std::string_view line, std::uint64_t offset,
            const std::vector<re2::StringPiece>& groups);
  void count_to(std::string_view region, std::size_t at);
  void show_lines(std::string_view region, std::size_t until);

  Listener& listener_;
  std::string buffer_;
  std::uint64_t offset_ = 0;  ///< of the buffer's first byte in the stream
  std::uint64_t lines_ = 0;   ///< ended in all streams
  std::uint64_t bytes_ = 0;
  std::uint64_t longest_ = 0;
  LogPosition position_;
  std::string_view previous_;               ///< of the region: the line before the current one
  std::size_t counted_ = 0;                 ///< of the region: newlines before it are in position_.line
  std::size_t shown_ = 0;                   ///< of the region: where the next wanted line starts
  std::uint64_t shown_line_ = 0;            ///< and its number
  std::size_t wanted_ = 0;                  ///< lines
  std::vector<std::uint64_t> tried_until_;  ///< for each signature
};

/// What finding all signatures needs, created once.
struct Catalogue {
  Prefilter prefilter;
  std::vector<std::vector<std::uint32_t>> signatures_of;  ///< by literal
  std::vector<std::string> literals;
};
const Catalogue& catalogue();

}  // namespace nlaunch::diagnose
