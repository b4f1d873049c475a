#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// Finds many literals in one pass, ignoring the case of ASCII letters. It looks at three bytes, and if no
/// literal can end near them it skips almost the length of the shortest one (Wu and Manber, 1994).
class Prefilter {
 public:
  /// The literals are in lower case, and none is shorter than `kShortest`.
  explicit Prefilter(std::vector<std::string> literals);

  struct Hit {
    std::size_t at;       ///< where it begins
    std::size_t literal;  ///< its index in the list given to the constructor
  };
  /// Calls `found(Hit)` for each occurrence of a literal, in the order in which their first bytes end.
  template <class Found>
  void scan(std::string_view text, Found&& found) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    for (std::size_t end = window_; end <= text.size();) {
      const auto block = block_of(bytes + end);
      const auto jump = jumps_[block];
      end += jump;
      if (jump > 0) continue;
      for (auto i = firsts_[block]; i < firsts_[block + 1]; ++i) {
        const auto at = end - window_;
        if (stands_at(text.substr(at), literals_[order_[i]])) found(Hit{at, order_[i]});
      }
      ++end;
    }
  }

  static constexpr std::size_t kShortest = 7;

 private:
  static constexpr std::size_t kBlock = 3;
  static constexpr std::size_t kBlocks = 1U << 15U;

  /// A number for the three bytes before `end`, the same for both cases of a letter.
  static std::size_t block_of(const unsigned char* end) {
    const auto folded = (static_cast<std::uint32_t>(end[-3]) | static_cast<std::uint32_t>(end[-2]) << 8U |
                         static_cast<std::uint32_t>(end[-1]) << 16U) |
                        0x202020U;
    constexpr std::uint32_t kGolden = 0x9E3779B1U;  // Fibonacci hashing: 2^32 over the golden ratio
    return folded * kGolden >> 17U;
  }
  static bool stands_at(std::string_view text, std::string_view literal);

  std::vector<std::string> literals_;
  std::size_t window_ = 0;                     ///< of each literal, this many first bytes are searched for
  std::vector<std::uint8_t> jumps_;            ///< for each block: how far the window may move
  std::vector<std::uint32_t> firsts_, order_;  ///< for each block: the literals whose window ends in it
};

}  // namespace nlaunch::diagnose
