#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch::config {

/// Gathers what is wrong with a file. Only the first mistakes are kept: a file that is wrong in a thousand
/// places is wrong in one way, and the time and memory that its errors take stay bounded.
class Problems {
 public:
  static constexpr std::size_t kMost = 50;

  /// The reference is valid until the next call.
  Diagnostic& error(std::string id, SourceSpan span, std::string message);
  /// Each that is not among them yet.
  void append(const Diagnostics& other);

  [[nodiscard]] bool any() const { return seen_ > 0; }
  [[nodiscard]] std::size_t count() const { return seen_; }
  [[nodiscard]] bool full() const { return seen_ > kMost; }
  /// All of them by place, closed by the number of those that were not kept.
  [[nodiscard]] Diagnostics take() const;

 private:
  std::vector<Diagnostic> kept_;
  std::size_t seen_ = 0;
  Diagnostic surplus_;
};

/// A hint for a name that nobody knows: the nearest of `candidates`, else all of them.
std::string suggest(std::string_view name, std::span<const std::string> candidates);

}  // namespace nlaunch::config
