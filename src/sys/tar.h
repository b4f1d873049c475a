#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "sys/byte_source.h"

/// Archives of tar: blocks of 512 bytes, a header and then the content of each member (POSIX.1-2017, pax,
/// "ustar Interchange Format"; the GNU and pax forms of a long name too).
namespace nlaunch::sys {

inline constexpr std::size_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

struct TarMember {
  enum class Type { file, folder, link, long_name, pax, other };
  std::string name;
  std::uint64_t size = 0;
  Type type = Type::other;
};

/// A header; nothing where its sum is wrong, as in anything that is no archive.
std::optional<TarMember> parse_tar_header(const TarBlock& block);

/// Goes through an archive, the header of its first member already read. `member` may read the content or
/// leave it. Links and devices are passed over. What is wrong with the archive is returned, for people;
/// empty: nothing.
std::string for_each_tar_file(ByteSource& archive, const TarBlock& first,
                              const std::function<void(const TarMember&, ByteSource& content)>& member);

}  // namespace nlaunch::sys
