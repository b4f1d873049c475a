#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch::config {

/// Collects the errors of a file. Only the first ones are kept: a file with a thousand errors usually has one
/// cause, and this bounds the time and memory for its errors.
class Problems {
 public:
  static constexpr std::size_t kMost = 50;

  /// The reference is valid until the next call.
  Diagnostic& error(std::string id, SourceSpan span, std::string message);
  /// Adds each diagnostic that is not in the list yet.
  void append(const Diagnostics& other);

  [[nodiscard]] bool any() const { return seen_ > 0; }
  [[nodiscard]] std::size_t count() const { return seen_; }
  [[nodiscard]] bool full() const { return seen_ > kMost; }
  /// All errors sorted by location, followed by the number of errors that were not kept.
  [[nodiscard]] Diagnostics take() const;

 private:
  std::vector<Diagnostic> kept_;
  std::size_t seen_ = 0;
  Diagnostic surplus_;
};

/// A hint for an unknown name: the nearest of `candidates`, otherwise all of them.
std::string suggest(std::string_view name, std::span<const std::string> candidates);

}  // namespace nlaunch::config
