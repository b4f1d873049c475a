#include "diagnose/prefilter.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace nlaunch::diagnose {
namespace {

constexpr std::size_t kPiece = sizeof(std::uint32_t);
constexpr std::size_t kStep = Prefilter::kShortest - kPiece + 1;
constexpr unsigned kHashBits = 18;  // the bit set, 32 KiB, stays in the first or second level of the cache
constexpr std::size_t kWordBits = 64;
constexpr unsigned kPerBucket =
    5;  // bits: hashes that share a bucket, so that the buckets stay in the cache, too
constexpr std::size_t kBuckets = 1U << (kHashBits - kPerBucket);

/// The four bytes from `at` on, the same for both cases of a letter.
std::uint32_t piece_at(const char* at) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, at, kPiece);
  return bytes | 0x20202020U;
}

std::uint32_t hash_of(std::uint32_t piece) {
  constexpr std::uint32_t kGolden = 0x9E3779B1U;  // Fibonacci hashing: 2^32 over the golden ratio
  return piece * kGolden >> (32U - kHashBits);
}

/// How often a character comes up in logs, roughly: its place in the order of frequency, the rarest first.
/// In the order that the logs of tests/diagnose have.
int commonness(char c) {
  static constexpr std::string_view kRareFirst = R"(\@$&#%!+}{~|`?^;j<z"q'>*-_)"
                                                 ")(,=9wv68y/xhg7k[].b3542mfpu1d:sliatcrone0 ";
  const auto place = kRareFirst.find(c);
  return place == std::string_view::npos ? 0 : static_cast<int>(place);
}

/// Where the window begins whose characters are the rarest.
std::size_t window_of(std::string_view literal) {
  std::size_t best = 0;
  int least = 0;
  for (std::size_t from = 0; from + Prefilter::kShortest <= literal.size(); ++from) {
    int sum = 0;
    for (const char c : literal.substr(from, Prefilter::kShortest)) sum += commonness(c);
    if (from == 0 || sum < least) {
      best = from;
      least = sum;
    }
  }
  return best;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

}  // namespace

Prefilter::Prefilter(std::vector<std::string> literals)
    : literals_(std::move(literals)), worth_((1U << kHashBits) / kWordBits), firsts_(kBuckets + 1) {
  for (std::uint32_t i = 0; i < literals_.size(); ++i) {
    if (literals_[i].size() < kShortest) throw std::logic_error("a literal of the prefilter is too short");
    const auto window = static_cast<std::uint32_t>(window_of(literals_[i]));
    for (auto at = window; at < window + kStep; ++at)
      pieces_.push_back({piece_at(literals_[i].data() + at), i, at});
  }
  std::ranges::sort(pieces_, {}, [](const Piece& piece) { return hash_of(piece.bytes); });
  for (const auto& piece : pieces_) {
    const auto hash = hash_of(piece.bytes);
    worth_[hash / kWordBits] |= std::uint64_t{1} << hash % kWordBits;
    ++firsts_[(hash >> kPerBucket) + 1];
  }
  for (std::size_t i = 0; i < kBuckets; ++i) firsts_[i + 1] += firsts_[i];
}

void Prefilter::search(std::string_view text, std::vector<Hit>& hits) const {
  hits.clear();
  for (std::size_t at = 0; at + kPiece <= text.size(); at += kStep) {
    const auto hash = hash_of(piece_at(text.data() + at));
    if ((worth_[hash / kWordBits] >> hash % kWordBits & 1U) != 0) compare(text, at, hits);
  }
  std::ranges::sort(hits);
}

/// Adds the literals that have the four bytes at this place in their windows.
void Prefilter::compare(std::string_view text, std::size_t at, std::vector<Hit>& hits) const {
  const auto bytes = piece_at(text.data() + at);
  const auto bucket = hash_of(bytes) >> kPerBucket;
  for (auto i = firsts_[bucket]; i < firsts_[bucket + 1]; ++i) {
    const auto& piece = pieces_[i];
    if (piece.bytes != bytes || piece.at > at) continue;
    const std::string_view literal = literals_[piece.literal];
    const auto there = text.substr(at - piece.at, literal.size());
    if (lower(there.front()) != literal.front()) continue;  // as most do
    if (std::ranges::equal(literal, there, {}, {}, lower)) hits.push_back({at - piece.at, piece.literal});
  }
}

}  // namespace nlaunch::diagnose
