#include "diagnose/prefilter.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace nlaunch::diagnose {
namespace {

unsigned char folded(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 'A' && byte <= 'Z' ? byte | 0x20U : byte;
}

}  // namespace

Prefilter::Prefilter(std::vector<std::string> literals) : literals_(std::move(literals)) {
  window_ = std::numeric_limits<std::uint8_t>::max();
  for (const auto& literal : literals_) window_ = std::min(window_, literal.size());
  if (window_ < kShortest) throw std::logic_error("a literal of the prefilter is too short");
  jumps_.assign(kBlocks, static_cast<std::uint8_t>(window_ - kBlock + 1));
  std::vector<std::size_t> ends(literals_.size());
  for (std::size_t i = 0; i < literals_.size(); ++i) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(literals_[i].data());
    for (std::size_t end = kBlock; end <= window_; ++end) {
      auto& jump = jumps_[block_of(bytes + end)];
      jump = std::min(jump, static_cast<std::uint8_t>(window_ - end));
    }
    ends[i] = block_of(bytes + window_);
  }
  order_.resize(literals_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return ends[i]; });
  firsts_.assign(kBlocks + 1, 0);
  for (const auto end : ends) ++firsts_[end + 1];
  std::partial_sum(firsts_.begin(), firsts_.end(), firsts_.begin());
}

bool Prefilter::stands_at(std::string_view text, std::string_view literal) {
  return text.size() >= literal.size() &&
         std::equal(literal.begin(), literal.end(), text.begin(), [](char mine, char theirs) {
           return static_cast<unsigned char>(mine) == folded(theirs);
         });
}

}  // namespace nlaunch::diagnose
