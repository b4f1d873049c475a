#include "base/packed.h"

#include <zlib.h>

#include <array>

#include <algorithm>

namespace nlaunch {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned kBits = 6;
constexpr std::size_t kDigitsOfGroup = 4;
constexpr std::size_t kBytesOfGroup = 3;

std::string base64(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += kBytesOfGroup) {
    const auto part = bytes.substr(at, kBytesOfGroup);
    unsigned group = 0;
    for (std::size_t i = 0; i < kBytesOfGroup; ++i)
      group = group << 8U | (i < part.size() ? static_cast<unsigned char>(part[i]) : 0U);
    for (std::size_t i = 0; i < kDigitsOfGroup; ++i) {
      const auto digit = group >> kBits * (kDigitsOfGroup - 1 - i) & 63U;
      out += i <= part.size() ? kDigits[digit] : '=';
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view digits) {
  if (digits.size() % kDigitsOfGroup != 0) return std::nullopt;
  const auto padding = digits.size() - std::min(digits.find_last_not_of('=') + 1, digits.size());
  if (padding > 2) return std::nullopt;
  digits.remove_suffix(padding);
  std::string out;
  unsigned group = 0;
  unsigned bits = 0;
  for (const char c : digits) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    group = (group << kBits | static_cast<unsigned>(digit)) & 0xFFFFU;
    bits += kBits;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(group >> bits & 0xFFU);
  }
  return out;
}

}  // namespace

std::string pack(std::string_view text) {
  auto size = ::compressBound(static_cast<uLong>(text.size()));
  std::string deflated(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
              static_cast<uLong>(text.size()), Z_BEST_COMPRESSION);  // the buffer is large enough
  return base64({deflated.data(), size});
}

std::optional<std::string> unpack(std::string_view packed, std::size_t limit) {
  auto deflated = from_base64(packed);
  if (!deflated || deflated->empty()) return std::nullopt;
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(deflated->data());
  stream.avail_in = static_cast<uInt>(deflated->size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK && text.size() <= limit) {
    std::array<char, 1U << 16U> block;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = block.size();
    state = ::inflate(&stream, Z_NO_FLUSH);
    text.append(block.data(), block.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END || text.size() > limit) return std::nullopt;
  return text;
}

}  // namespace nlaunch
