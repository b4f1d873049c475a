#include "supervise/mask_stream.h"

#include <algorithm>

namespace nlaunch::supervise {
namespace {

/// The start of the longest suffix of `text` that could be the start of a secret; the size of `text` if there
/// is none.
std::size_t start_of_candidate(std::string_view text, const std::vector<std::string>& secrets) {
  std::size_t start = text.size();
  for (const std::string_view secret : secrets) {
    const auto longest = std::min(secret.size() - 1, text.size());
    for (auto length = longest; length > text.size() - start; --length) {
      if (text.ends_with(secret.substr(0, length))) start = text.size() - length;
    }
  }
  return start;
}

/// The position up to which `text` can be masked and passed on: no secret, complete or possible, crosses it.
std::size_t end_of_settled(std::string_view text, const std::vector<std::string>& secrets) {
  auto end = start_of_candidate(text, secrets);
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& secret : secrets) {
      const auto across = text.find(secret, end >= secret.size() ? end - secret.size() + 1 : 0);
      if (across < end) {
        end = across;
        moved = true;
      }
    }
  }
  return end;
}

}  // namespace

std::string_view MaskStream::feed(std::string_view bytes) {
  if (masker_.empty()) return bytes;
  held_ += bytes;
  const auto settled = end_of_settled(held_, masker_.values());
  out_ = masker_.mask(held_.substr(0, settled));
  held_.erase(0, settled);
  return out_;
}

std::string_view MaskStream::finish() {
  out_ = masker_.mask(std::move(held_));
  held_.clear();
  return out_;
}

}  // namespace nlaunch::supervise
