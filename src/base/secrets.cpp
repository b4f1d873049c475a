#include "base/secrets.h"

#include <algorithm>

namespace nlaunch {

bool looks_like_secret(std::string_view name) {
  return name.ends_with("_KEY") || name.ends_with("_TOKEN") || name == "TOKEN" ||
         name.find("PASSWORD") != std::string_view::npos || name.find("SECRET") != std::string_view::npos ||
         name.find("CREDENTIAL") != std::string_view::npos;
}

void Masker::add(std::string value) {
  constexpr std::size_t kShortest = 4;
  if (value.size() < kShortest || std::ranges::find(values_, value) != values_.end()) return;
  values_.push_back(std::move(value));
  std::ranges::sort(values_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string Masker::mask(std::string text) const {
  for (const auto& value : values_) {
    for (auto at = text.find(value); at != std::string::npos; at = text.find(value, at + kMasked.size())) {
      text.replace(at, value.size(), kMasked);
    }
  }
  return text;
}

}  // namespace nlaunch
