#pragma once
#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/described.h"
#include "base/source.h"

namespace nlaunch {

enum class Severity { error, warning, note };
BOOST_DESCRIBE_ENUM(Severity, error, warning, note)

/// A second location or a measured fact that belongs to a diagnostic.
struct Note {
  std::string message;
  SourceSpan span;
};

/// One problem, in the form in which it is reported to a user.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string id;       ///< stable, "layer.what": "config.unknown-key"
  std::string message;  ///< one sentence: what was found and what is allowed
  SourceSpan span;
  std::vector<Note> notes;
  std::string hint;  ///< what to type next; can be empty
};

/// All problems, in the order in which they were found.
class Diagnostics {
 public:
  Diagnostics() = default;
  explicit Diagnostics(Diagnostic first) { items_.push_back(std::move(first)); }

  /// Adds a diagnostic and returns it, so that notes and a hint can be set. The reference is valid until the
  /// next `add`.
  Diagnostic& add(Diagnostic item);
  Diagnostic& error(std::string id, SourceSpan span, std::string message);
  Diagnostic& warning(std::string id, SourceSpan span, std::string message);
  void append(const Diagnostics& other);

  [[nodiscard]] bool has_errors() const;
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] const std::vector<Diagnostic>& items() const { return items_; }
  /// For callers that can show only one sentence. There is at least one diagnostic.
  [[nodiscard]] const std::string& first_message() const { return items_.front().message; }

 private:
  std::vector<Diagnostic> items_;
};

/// The return type of operations that can fail for a reason that the user needs to know.
template <class T>
using Result = std::expected<T, Diagnostics>;

/// A failure without a location: `return failure("sys.spawn", "cannot start {}", name);`
template <class... Args>
std::unexpected<Diagnostics> failure(std::string id, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Diagnostics(
      {Severity::error, std::move(id), fmt::format(text, std::forward<Args>(args)...), {}, {}, {}}));
}

enum class Color { never, always };

/// The whole text of a diagnostic, several lines, ending in a newline:
///   FILE:LINE:COLUMN: error: message [id]
///     12 |   gpu_per_node: 8
///        |   ^^^^^^^^^^^^
///   note: ...
///   hint: ...
/// Bytes that could act on a terminal are shown escaped.
/// Of a longer source line, only the part around the location is shown: `width` characters, or 160 if it is
/// 0, the line number included.
std::string render(const Diagnostic& diagnostic, Color color = Color::never, std::size_t width = 0);

/// All diagnostics, without duplicates, followed by a count if there is more than one error.
std::string render(const Diagnostics& diagnostics, Color color = Color::never, std::size_t width = 0);

}  // namespace nlaunch
