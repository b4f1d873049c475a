#pragma once
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nlaunch {

/// A text with references: `${NAME}`, `${NAME:-default}`; `$${` stands for a literal `${`.
/// A default may itself hold references. Braces within one come in pairs.
struct Reference {
  std::string name;
  std::optional<std::string> fallback;
  std::size_t offset = 0;  ///< of the `$` in the text, in bytes
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

/// Takes a text apart; on error the offset says where.
std::expected<std::vector<Segment>, InterpolationError> parse_template(std::string_view text);

/// The references of a text, those in defaults too. A text that does not parse has none.
std::vector<Reference> references(std::string_view text);

/// What a name stands for: a value, nothing (an error), or `keep` (to be resolved later: the reference stays
/// in the text as it was).
struct Keep {};
struct Unknown {
  std::string message;  ///< why, for the user
  /// The name is right and has no value now: a default takes its place. One that is misspelt is an error all
  /// the same.
  bool unset = false;
};
/// A text that went through this pass itself: the references that it has kept are still to be resolved.
struct Expanded {
  std::string text;
};
using Lookup = std::variant<std::string, Keep, Unknown, Expanded>;

/// Replaces what `lookup` knows. `$${` becomes `${` in the last pass only.
enum class Pass { middle, last };
std::expected<std::string, InterpolationError> expand(std::string_view text,
                                                      const std::function<Lookup(std::string_view)>& lookup,
                                                      Pass pass);

}  // namespace nlaunch
