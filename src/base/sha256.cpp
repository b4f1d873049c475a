#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace nlaunch {
namespace {

constexpr std::size_t kBlock = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using Hash = std::array<std::uint32_t, 8>;

void take_block(Hash& hash, std::string_view block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < kBlock; ++i) w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const Hash step{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += step[i];
}

/// As bytes, the last blocks taken in.
std::string digest_of(Hash hash, std::uint64_t bytes, std::string rest) {
  const std::uint64_t bits = bytes * 8;
  rest += '\x80';
  while (rest.size() % kBlock != kBlock - sizeof(bits)) rest += '\0';
  for (unsigned shift = 64; shift > 0; shift -= 8) rest += static_cast<char>(bits >> (shift - 8) & 0xFFU);
  for (std::string_view left = rest; !left.empty(); left.remove_prefix(kBlock))
    take_block(hash, left.substr(0, kBlock));
  std::string out;
  for (const auto word : hash) {
    for (unsigned shift = 32; shift > 0; shift -= 8) out += static_cast<char>(word >> (shift - 8) & 0xFFU);
  }
  return out;
}

std::string digest(std::string_view data) {
  Hash hash{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t bytes = data.size();
  for (; data.size() >= kBlock; data.remove_prefix(kBlock)) take_block(hash, data.substr(0, kBlock));
  return digest_of(hash, bytes, std::string(data));
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

std::string sha256(std::string_view data) {
  return hex(digest(data));
}

std::string hmac_sha256(std::string_view key, std::string_view data) {
  std::string block = key.size() > kBlock ? digest(key) : std::string(key);
  block.resize(kBlock, '\0');
  std::string inner = block;
  std::string outer = block;
  for (auto& c : inner) c ^= 0x36;
  for (auto& c : outer) c ^= 0x5c;
  return hex(digest(outer + digest(inner.append(data))));
}

void Sha256::feed(std::string_view data) {
  bytes_ += data.size();
  if (!rest_.empty()) {
    const auto missing = std::min(kBlock - rest_.size(), data.size());
    rest_ += data.substr(0, missing);
    data.remove_prefix(missing);
    if (rest_.size() < kBlock) return;
    take_block(hash_, rest_);
    rest_.clear();
  }
  for (; data.size() >= kBlock; data.remove_prefix(kBlock)) take_block(hash_, data.substr(0, kBlock));
  rest_ = data;
}

std::string Sha256::finish() {
  return hex(digest_of(hash_, bytes_, std::move(rest_)));
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

}  // namespace nlaunch
