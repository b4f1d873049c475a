#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "sys/byte_source.h"

/// tar archives: blocks of 512 bytes, a header and then the content of each member (POSIX.1-2017, pax, "ustar
/// Interchange Format"; also the GNU and pax forms of long names).
namespace nlaunch::sys {

inline constexpr std::size_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

struct TarMember {
  enum class Type { file, folder, link, long_name, pax, other };
  std::string name;
  std::uint64_t size = 0;
  Type type = Type::other;
};

/// Parses a header; empty if its checksum is wrong, as for anything that is not an archive.
std::optional<TarMember> parse_tar_header(const TarBlock& block);

/// Iterates over an archive whose first header has already been read. `member` may read the content or leave
/// it. Links and devices are skipped. Returns what is wrong with the archive, for the user; empty: nothing.
std::string for_each_tar_file(ByteSource& archive, const TarBlock& first,
                              const std::function<void(const TarMember&, ByteSource& content)>& member);

}  // namespace nlaunch::sys
