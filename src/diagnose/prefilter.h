#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// Finds many literals in one pass, ignoring the case of ASCII letters. It looks at four bytes of the text,
/// at every fourth place only: whatever the place of a literal, one of the first four-byte pieces of a window
/// of seven bytes in it is at such a place. A bit set tells which four bytes are worth a comparison.
class Prefilter {
 public:
  /// The literals are in lower case, and none is shorter than `kShortest`.
  explicit Prefilter(std::vector<std::string> literals);

  struct Hit {
    std::size_t at = 0;       ///< where it begins
    std::size_t literal = 0;  ///< its index in the list given to the constructor
    auto operator<=>(const Hit&) const = default;
  };
  /// All occurrences, sorted, in the place of what `hits` had.
  void search(std::string_view text, std::vector<Hit>& hits) const;

  static constexpr std::size_t kShortest = 7;

 private:
  /// Four bytes of a literal.
  struct Piece {
    std::uint32_t bytes = 0;
    std::uint32_t literal = 0;
    std::uint32_t at = 0;  ///< in the literal
  };
  void compare(std::string_view text, std::size_t at, std::vector<Hit>& hits) const;

  std::vector<std::string> literals_;
  std::vector<std::uint64_t> worth_;   ///< one bit for each hash of four bytes
  std::vector<std::uint32_t> firsts_;  ///< for each bucket of hashes: its first piece
  std::vector<Piece> pieces_;          ///< in the order of their hashes
};

}  // namespace nlaunch::diagnose
