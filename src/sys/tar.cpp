#include "sys/tar.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace nlaunch::sys {
namespace {

struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kSum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagic{257, 5};
constexpr Field kPrefix{345, 155};

std::string_view text_of(const TarBlock& block, Field field) {
  const std::string_view whole(block.data() + field.at, field.size);
  return whole.substr(0, whole.find('\0'));
}

/// An octal number; GNU writes large ones in base 256, with the first bit set.
std::optional<std::uint64_t> number_of(const TarBlock& block, Field field) {
  if ((static_cast<unsigned char>(block[field.at]) & 0x80U) != 0) {
    std::uint64_t value = 0;
    for (std::size_t i = field.at + field.size - sizeof(value); i < field.at + field.size; ++i)
      value = value << 8U | static_cast<unsigned char>(block[i]);
    return value;
  }
  auto digits = text_of(block, field);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  std::uint64_t value = 0;
  const auto done = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (done.ec != std::errc() && !digits.empty()) return std::nullopt;
  return value;
}

std::uint64_t sum_of(const TarBlock& block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kSum.at && i < kSum.at + kSum.size;  // counted as spaces
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

TarMember::Type type_of(char letter) {
  using enum TarMember::Type;
  switch (letter) {
    case '0':
    case '\0':
      return file;
    case '1':
    case '2':
      return link;
    case '5':
      return folder;
    case 'L':
      return long_name;
    case 'x':
      return pax;
    default:
      return other;
  }
}

/// The content of one member; the unread part is skipped when the next one is requested.
class Content : public ByteSource {
 public:
  Content(ByteSource& archive, std::uint64_t size) : archive_(archive), left_(size) {
    padding_ = (kTarBlock - size % kTarBlock) % kTarBlock;
  }
  std::size_t read(std::span<char> room) override {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), left_));
    const auto got = most == 0 ? 0 : archive_.read(room.first(most));
    truncated_ = truncated_ || (most > 0 && got == 0);
    left_ -= got;
    return got;
  }
  [[nodiscard]] std::string remark() const override { return truncated_ ? "truncated in the archive" : ""; }

  /// Skips the rest; false if the archive ends before.
  bool skip() {
    std::array<char, 16384> block;
    while (left_ > 0 && read(block) > 0) {
    }
    return left_ == 0 && read_full(archive_, std::span(block).first(padding_)) == padding_;
  }

 private:
  ByteSource& archive_;
  std::uint64_t left_;
  std::size_t padding_;
  bool truncated_ = false;
};

std::string whole(Content& content) {
  constexpr std::size_t kLongest = 64U << 10U;
  std::string text(kLongest, '\0');
  text.resize(read_full(content, text));
  return text;
}

/// The path of a pax header, "27 path=a/very/long/name\n".
std::string pax_path(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto done = std::from_chars(records.data(), records.data() + records.size(), length);
    if (done.ec != std::errc() || length == 0 || length > records.size()) break;
    auto record = records.substr(0, length);
    record.remove_prefix(std::min(record.find(' ') + 1, record.size()));
    if (record.starts_with("path=") && record.ends_with('\n'))
      return std::string(record.substr(5, record.size() - 6));
    records.remove_prefix(length);
  }
  return "";
}

}  // namespace

std::optional<TarMember> parse_tar_header(const TarBlock& block) {
  const auto sum = number_of(block, kSum);
  const auto size = number_of(block, kSize);
  if (!sum || !size || *sum != sum_of(block) || block[kName.at] == '\0') return std::nullopt;
  TarMember member{.name = std::string(text_of(block, kName)), .size = *size, .type = type_of(block[kType])};
  const auto prefix = text_of(block, kPrefix);
  // GNU's own format has times where POSIX has the prefix; the characters after "ustar" distinguish them.
  const bool posix = text_of(block, kMagic) == "ustar" && block[kMagic.at + kMagic.size] == '\0';
  if (posix && !prefix.empty()) member.name.insert(0, std::string(prefix) + '/');
  return member;
}

std::string for_each_tar_file(ByteSource& archive, const TarBlock& first,
                              const std::function<void(const TarMember&, ByteSource&)>& member) {
  std::string long_name;
  for (auto block = first;;) {
    auto found = parse_tar_header(block);
    if (!found) {
      const bool end = std::ranges::all_of(block, [](char c) { return c == '\0'; });
      return end ? "" : "broken archive: the part before that was read";
    }
    Content content(archive, found->size);
    if (found->type == TarMember::Type::long_name) {
      const auto text = whole(content);
      long_name = text.substr(0, text.find('\0'));
    } else if (found->type == TarMember::Type::pax) {
      long_name = pax_path(whole(content));
    } else {
      if (!long_name.empty()) found->name = std::exchange(long_name, "");
      if (found->type == TarMember::Type::file) member(*found, content);
    }
    if (!content.skip() || read_full(archive, block) < kTarBlock)
      return "truncated archive: the part before that was read";
  }
}

}  // namespace nlaunch::sys
