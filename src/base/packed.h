#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace nlaunch {

/// Packs a string for a small place, such as an environment variable: deflated (zlib), then base64 (RFC
/// 4648). The same string gives the same bytes with the same release of zlib.
std::string pack(std::string_view text);

/// The inverse. Returns nothing for data that `pack` did not produce, and for a string of more than `limit`
/// bytes.
std::optional<std::string> unpack(std::string_view packed, std::size_t limit);

}  // namespace nlaunch
