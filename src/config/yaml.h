#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/experiment.h"
#include "config/problems.h"

/// YAML as a tree in which every value and every key has its location.
namespace nlaunch::config {

struct Entry;

struct Node {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;    ///< of a scalar, after unescaping; a number or a bool as it was written
  bool plain = false;  ///< a scalar without quotes
  SourceSpan span;     ///< for an empty value: the span of its key
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< in file order, without duplicate keys

  [[nodiscard]] const Entry* entry(std::string_view key) const;
  [[nodiscard]] const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Entry {
  Text key;
  Node value;
};

/// The maximum number of values in a file, counting every use of an alias.
inline constexpr std::size_t kMostNodes = 50'000;
/// The maximum nesting of lists and maps.
inline constexpr std::size_t kMostLevels = 64;
/// The maximum size of a file, in bytes.
inline constexpr std::uint64_t kMostBytes = 1U << 20U;

/// A file of at most kMostBytes of UTF-8, without its byte order mark.
Result<std::shared_ptr<const SourceFile>> read_source(const std::string& path);

/// The single document of a source; an empty one is null. Errors that leave a usable tree (such as a
/// duplicate key) go to `problems`; a failure means that the text is not YAML, or is too large.
Result<Node> parse_yaml(const std::shared_ptr<const SourceFile>& file, Problems& problems);

/// The same for text that is itself a value: locations are within `value`.
Result<Node> parse_yaml(const Text& value, Problems& problems);

}  // namespace nlaunch::config
