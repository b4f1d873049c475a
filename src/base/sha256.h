#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace nlaunch {

/// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), both as 64 hexadecimal digits.
std::string sha256(std::string_view data);
std::string hmac_sha256(std::string_view key, std::string_view data);

/// Compares in a time that does not tell how much of the two is the same.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace nlaunch
