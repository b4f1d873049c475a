#include "sys/tar_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "sys/tar.h"

namespace nlaunch::sys {
namespace {

constexpr std::size_t kNameSize = 100;
constexpr std::size_t kPrefixSize = 155;
constexpr std::uint64_t kLargestSize = 077777777777;  // eleven octal digits

/// Where the fields of a header begin (ustar).
enum Offset : std::size_t {
  name = 0,
  mode = 100,
  uid = 108,
  gid = 116,
  size = 124,
  time = 136,
  sum = 148,
  type = 156,
  magic = 257,
  prefix = 345
};

/// "folder/file" as prefix and name; empty if it does not fit.
std::optional<std::pair<std::string_view, std::string_view>> split_name(std::string_view whole) {
  if (whole.size() <= kNameSize) return std::pair(std::string_view(), whole);
  const auto slash = whole.find('/', whole.size() - kNameSize - 1);
  // If there is no slash, npos is larger than any prefix.
  if (slash > kPrefixSize || slash == 0 || slash + 1 == whole.size()) return std::nullopt;
  return std::pair(whole.substr(0, slash), whole.substr(slash + 1));
}

void put(TarBlock& block, Offset at, std::string_view text) {
  std::ranges::copy(text, block.begin() + at);
}

/// A number fills its field, followed by a zero byte.
void put_octal(TarBlock& block, Offset at, std::uint64_t value, std::size_t digits) {
  put(block, at, fmt::format("{:0{}o}", value, digits));
}

TarBlock header(std::string_view folder, std::string_view base, char kind, const TarWriter::File& file) {
  TarBlock block{};
  put(block, Offset::name, base);
  put_octal(block, Offset::mode, file.mode, 7);
  put_octal(block, Offset::uid, 0, 7);
  put_octal(block, Offset::gid, 0, 7);
  put_octal(block, Offset::size, std::min(file.size, kLargestSize), 11);
  put_octal(block, Offset::time,
            static_cast<std::uint64_t>(std::clamp<std::int64_t>(file.time, 0, kLargestSize)), 11);
  put(block, Offset::sum, "        ");
  block[Offset::type] = kind;
  put(block, Offset::magic, std::string_view("ustar\00000", 8));
  put(block, Offset::prefix, folder);
  unsigned total = 0;
  for (const char c : block) total += static_cast<unsigned char>(c);
  put(block, Offset::sum, fmt::format("{:06o}{} ", total, '\0'));
  return block;
}

/// "LENGTH KEY=VALUE\n", where LENGTH counts the whole record including itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const auto rest = fmt::format(" {}={}\n", key, value);
  auto length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

std::string_view bytes(const TarBlock& block) {
  return {block.data(), block.size()};
}

std::uint64_t padding_behind(std::uint64_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

}  // namespace

bool TarWriter::begin(const File& file) {
  const auto parts = split_name(file.name);
  std::string records;
  if (!parts) {
    // pax records are UTF-8 unless they declare otherwise.
    if (text::first_invalid_utf8(file.name)) records += pax_record("hdrcharset", "BINARY");
    records += pax_record("path", file.name);
  }
  if (file.size > kLargestSize) records += pax_record("size", std::to_string(file.size));
  if (!records.empty()) {
    const File pax{"pax", records.size(), file.time, 0644};
    records.resize(records.size() + padding_behind(records.size()), '\0');
    if (!sink_(bytes(header("", pax.name, 'x', pax))) || !sink_(records)) return false;
  }
  // Readers that do not know pax see the end of the name.
  const auto [folder, base] = parts.value_or(std::pair(
      std::string_view(),
      std::string_view(file.name).substr(file.name.size() - std::min(file.name.size(), kNameSize))));
  left_ = file.size;
  padding_ = padding_behind(file.size);
  return sink_(bytes(header(folder, base, '0', file)));
}

bool TarWriter::write(std::string_view content) {
  if (content.size() > left_ || !sink_(content)) return false;
  left_ -= content.size();
  return left_ > 0 || sink_(std::string(std::exchange(padding_, 0), '\0'));
}

bool TarWriter::finish() {
  return left_ == 0 && sink_(std::string(2 * kTarBlock, '\0'));
}

}  // namespace nlaunch::sys
