#include "base/secrets.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nlaunch {
namespace {

/// In any spelling; `eos_token`, `max_tokens`, `label_key` and similar names are not secrets.
constexpr std::array<std::string_view, 6> kBeforeKey{"api",    "access", "private",
                                                     "secret", "auth",   "encryption"};
constexpr std::array<std::string_view, 12> kBeforeToken{"auth",   "access",  "api",      "hf",
                                                        "bearer", "refresh", "github",   "gitlab",
                                                        "wandb",  "session", "personal", "security"};

/// True for "api_key", "api-key", "api.key" and "apikey".
bool ends_with_one_of(std::string_view name, const auto& words, std::string_view last) {
  if (!name.ends_with(last)) return false;
  name.remove_suffix(last.size());
  if (name.ends_with('_') || name.ends_with('-') || name.ends_with('.')) name.remove_suffix(1);
  return std::ranges::any_of(words, [&](std::string_view word) { return name.ends_with(word); });
}

}  // namespace

bool looks_like_secret(std::string_view name) {
  const auto plain = text::lower(name);
  const auto has = [&](std::string_view part) { return plain.find(part) != std::string::npos; };
  if (has("passwor") || has("passwd") || has("secret") || has("credential")) return true;
  const bool upper = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  if (upper &&
      (name.ends_with("_KEY") || name.ends_with("_KEY_ID") || name.ends_with("_TOKEN") || name == "TOKEN"))
    return true;
  return ends_with_one_of(plain, kBeforeKey, "key") || ends_with_one_of(plain, kBeforeKey, "keys") ||
         ends_with_one_of(plain, kBeforeToken, "token");
}

void Masker::add(std::string value) {
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
