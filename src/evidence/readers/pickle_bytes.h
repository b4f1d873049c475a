#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace nlaunch::evidence {

/// Why a pickle is rejected.
struct RefusedPickle {
  std::string why;
};
[[noreturn]] inline void refuse(std::string why) {
  throw RefusedPickle{std::move(why)};
}

/// The bytes of a pickle, from front to back. Missing bytes and invalid numbers are rejected.
class PickleBytes {
 public:
  explicit PickleBytes(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse("it is truncated");
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("it is truncated");
    const auto text = take(end);
    take(1);
    return text;
  }

  /// Without a sign, least significant byte first.
  std::uint64_t little(std::size_t size) {
    std::uint64_t value = 0;
    const auto text = take(size);
    for (std::size_t i = size; i-- > 0;) value = value << 8U | static_cast<unsigned char>(text[i]);
    return value;
  }

  /// Two's complement, least significant byte first.
  static std::int64_t integer(std::string_view bytes) {
    constexpr std::size_t kLargest = 8;
    if (bytes.size() > kLargest) refuse("an integer of more than 64 bits");
    if (bytes.empty()) return 0;
    std::uint64_t value = (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
    return static_cast<std::int64_t>(value);
  }

  static std::int64_t decimal(std::string_view text) {
    if (text.ends_with('L')) text.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) refuse("an invalid number");
    return value;
  }

 private:
  std::string_view rest_;
};

}  // namespace nlaunch::evidence
