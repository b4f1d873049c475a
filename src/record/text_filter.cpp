#include "record/text_filter.h"

#include <algorithm>

#include "base/secrets.h"

namespace nlaunch::record {
namespace {

constexpr std::size_t kWindow = 1U << 20U;
/// Held back, because a secret may continue in what follows.
constexpr std::size_t kKeep = 4096;
constexpr std::size_t kLongestSecret = 64U << 10U;

/// Where the settled text ends: at the end of a line, else between words, and not inside a secret. A secret
/// at the end may continue.
std::size_t end_of_settled(std::string_view text, const std::vector<SecretMatch>& secrets) {
  const auto latest = text.size() - kKeep;
  auto end = text.rfind('\n', latest);
  if (end == std::string_view::npos) end = text.find_last_of(" \t,;\"'", latest);
  end = end == std::string_view::npos ? latest : end + 1;
  for (auto secret = secrets.rbegin(); secret != secrets.rend(); ++secret) {
    const bool open = secret->to == text.size() && text.size() - secret->begin < kLongestSecret;
    if (secret->begin < end && (secret->to > end || open)) end = secret->begin;
  }
  return end;
}

}  // namespace

bool TextFilter::feed(std::string_view text) {
  while (!text.empty()) {
    const auto part = text.substr(0, kWindow);
    held_ += part;
    text.remove_prefix(part.size());
    if (held_.size() >= kWindow + kKeep && !let_through(false)) return false;
  }
  return true;
}

bool TextFilter::finish() {
  return let_through(true);
}

bool TextFilter::let_through(bool last) {
  const auto secrets = scanner_.scan(held_);
  const auto end = last ? held_.size() : end_of_settled(held_, secrets);
  std::string out;
  std::size_t copied = 0;
  const std::string_view text(held_);
  const auto copy = [&](std::size_t to) {
    const auto part = text.substr(copied, to - copied);
    line_ += static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
    out += part;
    copied = to;
  };
  for (const auto& secret : secrets) {
    if (secret.from >= end) break;
    copy(secret.from);
    note(secret.what, line_);
    out += kMasked;
    copied = std::min(secret.to, end);
    line_ +=
        static_cast<std::uint64_t>(std::ranges::count(text.substr(secret.from, copied - secret.from), '\n'));
  }
  copy(end);
  held_.erase(0, end);
  return sink_(redactor_ != nullptr ? redactor_->redact(out) : out);
}

void TextFilter::note(const std::string& what, std::uint64_t line) {
  constexpr std::size_t kMostLines = 20;
  auto& masked = masked_[what];
  ++masked.count;
  if (masked.lines.size() < kMostLines) masked.lines.push_back(line);
}

}  // namespace nlaunch::record
