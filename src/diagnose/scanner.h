#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/match.h"
#include "diagnose/prefilter.h"

namespace nlaunch::diagnose {

/// What was read of a stream.
struct StreamEnd {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;  ///< the last one need not end in a newline
  std::string last{};       ///< the end of the last line that is not blank
};

/// Finds the signatures in a stream, in one pass and in bounded memory: lines that contain a literal of a
/// signature are tried with its pattern, the others are only counted. Each thread needs its own.
class Scanner {
 public:
  Scanner();

  /// Starts a new stream. `listener` must outlive it.
  void begin(std::uint32_t file, Listener& listener);
  /// Where the next bytes of the stream go; never empty.
  [[nodiscard]] std::span<char> room();
  /// So many bytes have been put there.
  void filled(std::size_t size);
  StreamEnd finish();

 private:
  /// Scans the first `size` bytes of the buffer and drops the first `done` of them.
  void scan(std::size_t size, std::size_t done);
  void hit(std::string_view region, const Prefilter::Hit& hit);
  /// Whether it matches.
  bool try_signature(std::size_t index, std::string_view line, std::uint64_t offset);
  void tell(const Signature& signature, std::string_view line, std::uint64_t offset,
            const std::vector<re2::StringPiece>& groups);
  void read_on(std::string_view region, std::size_t begin);
  void count_to(std::string_view region, std::size_t at);
  void show_lines(std::string_view region, std::size_t until);

  void keep_last(std::string_view part);

  Listener* listener_ = nullptr;
  std::vector<char> buffer_;
  std::size_t used_ = 0;  ///< of the buffer
  std::vector<Prefilter::Hit> hits_;
  std::uint64_t offset_ = 0;  ///< of the buffer's first byte in the stream
  std::string last_;          ///< the end of what is not blank
  LogPosition position_;
  std::string_view previous_;               ///< of the region: the line before the current one
  std::size_t counted_ = 0;                 ///< of the region: newlines before it are in position_.line
  std::size_t shown_ = 0;                   ///< of the region: where the next wanted line starts
  std::uint64_t shown_line_ = 0;            ///< and its number
  std::size_t wanted_ = 0;                  ///< so many of the next lines
  std::vector<std::uint64_t> tried_until_;  ///< for each signature
};

/// What finding all signatures needs, created once.
struct Catalogue {
  Prefilter prefilter;
  std::vector<std::vector<std::uint32_t>> signatures_of;  ///< by literal
  std::vector<bool> reads_on;  ///< by signature: an analysis wants the lines after it
  std::vector<std::string> literals;
};
const Catalogue& catalogue();

}  // namespace nlaunch::diagnose
