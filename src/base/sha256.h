#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace nlaunch {

/// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), both as 64 hexadecimal digits.
std::string sha256(std::string_view data);
std::string hmac_sha256(std::string_view key, std::string_view data);

/// SHA-256 of what comes in parts.
class Sha256 {
 public:
  void feed(std::string_view data);
  /// 64 hexadecimal digits of all that was fed. To be called once.
  std::string finish();

 private:
  std::array<std::uint32_t, 8> hash_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t bytes_ = 0;
  std::string rest_;  ///< less than a block
};

/// Compares in a time that does not tell how much of the two is the same.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace nlaunch
