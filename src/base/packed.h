#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace nlaunch {

/// A text for a place that holds little, such as a variable: deflated (zlib), in base64 (RFC 4648). The same
/// text gives the same bytes under one release of zlib.
std::string pack(std::string_view text);

/// The way back. Nothing for what `pack` did not make, and for a text over `limit` bytes.
std::optional<std::string> unpack(std::string_view packed, std::size_t limit);

}  // namespace nlaunch
