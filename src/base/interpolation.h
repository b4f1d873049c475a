#pragma once
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nlaunch {

/// A string with references: `${NAME}`, `${NAME:-default}`; `$${` is a literal `${`. A default can contain
/// references. Braces in a default must be balanced.
struct Reference {
  std::string name;
  std::optional<std::string> fallback;
  std::size_t offset = 0;  ///< of the `$` in the string, in bytes
  std::size_t length = 0;  ///< of the whole reference
};
struct Literal {
  std::string text;
};
using Segment = std::variant<Literal, Reference>;

struct InterpolationError {
  std::string message;
  std::size_t offset = 0;
  std::size_t length = 1;
};

/// Parses a string; on error, the offset is the position of the error.
std::expected<std::vector<Segment>, InterpolationError> parse_template(std::string_view text);

/// The references of a string, including those in defaults. A string that does not parse has none.
std::vector<Reference> references(std::string_view text);

/// The result of looking up a name: a value, an error, or `keep` (resolved later: the reference stays in the
/// string unchanged).
struct Keep {};
struct Unknown {
  std::string message;  ///< why, for the user
  /// The name is valid but has no value now: a default is used instead. A misspelt name is still an error.
  bool unset = false;
};
/// A string that went through this pass itself: the references that it kept are still to be resolved.
struct Expanded {
  std::string text;
};
using Lookup = std::variant<std::string, Keep, Unknown, Expanded>;

/// Replaces the references that `lookup` knows. `$${` becomes `${` only in the last pass.
enum class Pass { middle, last };
std::expected<std::string, InterpolationError> expand(std::string_view text,
                                                      const std::function<Lookup(std::string_view)>& lookup,
                                                      Pass pass);

}  // namespace nlaunch
