#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch {

/// True for a name whose value must not be printed or given to others: *_KEY, *_TOKEN, and in any spelling
/// *password*, *secret*, *credential*, api-key, hf_token. `eos_token`, `max_tokens` and similar names do not
/// count.
bool looks_like_secret(std::string_view name);

/// Shown instead of a secret.
inline constexpr std::string_view kMasked = "***";

/// Removes known secret values from strings.
class Masker {
 public:
  /// In bytes; shorter values are not masked, because they would match ordinary text.
  static constexpr std::size_t kShortest = 4;
  void add(std::string value);
  [[nodiscard]] std::string mask(std::string text) const;
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] const std::vector<std::string>& values() const { return values_; }

 private:
  std::vector<std::string> values_;  // longest first
};

}  // namespace nlaunch
