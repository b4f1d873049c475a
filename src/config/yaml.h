#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/experiment.h"
#include "config/problems.h"

/// YAML as a tree whose every value and every key knows its place.
namespace nlaunch::config {

struct Entry;

struct Node {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;    ///< of a scalar, as it means; a number or a bool as it was written
  bool plain = false;  ///< a scalar without quotes
  SourceSpan span;     ///< of an empty value: its key's
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< in file order, no key twice

  [[nodiscard]] const Entry* entry(std::string_view key) const;
  [[nodiscard]] const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Entry {
  Text key;
  Node value;
};

/// The most values that a file may hold, those that aliases repeat counted each time.
inline constexpr std::size_t kMostNodes = 50'000;
/// The most levels of lists and maps in each other.
inline constexpr std::size_t kMostLevels = 64;
/// The most bytes of a file that are read.
inline constexpr std::uint64_t kMostBytes = 1U << 20U;

/// A file of at most kMostBytes of UTF-8, without its byte order mark.
Result<std::shared_ptr<const SourceFile>> read_source(const std::string& path);

/// The one document of a source; an empty one is null. Mistakes that leave a tree to go on with (a key that
/// is there twice) go to `problems`; a failure is a text that is no YAML, or too much of it.
Result<Node> parse_yaml(const std::shared_ptr<const SourceFile>& file, Problems& problems);

/// The same for a text that is itself a value: places are within `value`.
Result<Node> parse_yaml(const Text& value, Problems& problems);

}  // namespace nlaunch::config
