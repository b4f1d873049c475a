#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/described.h"
#include "base/units.h"
#include "config/problems.h"
#include "config/yaml.h"

/// Converts the tree to typed values. Every error goes to Problems, and reading continues.
namespace nlaunch::config {

/// A node with its path ("roles.learner.gpus"), for messages.
class Value {
 public:
  /// `key` is the location of the key that the value belongs to; the file itself has none.
  Value(const Node& node, std::string path, Problems& problems, SourceSpan key = {})
      : node_(&node), path_(std::move(path)), problems_(&problems), key_(std::move(key)) {}

  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] const SourceSpan& span() const { return node_->span; }
  [[nodiscard]] const SourceSpan& key_span() const { return key_ ? key_ : node_->span; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Problems& problems() const { return *problems_; }
  [[nodiscard]] bool is(Node::Kind kind) const { return node_->kind == kind; }

  /// Reports an error at this value.
  Diagnostic& error(std::string id, std::string message) const;
  /// "'roles.learner.gpus' must be a whole number, found 'two'", or that the value is missing.
  Diagnostic& wrong_type(std::string_view wanted) const;

  /// Any scalar, as it was written.
  [[nodiscard]] std::optional<std::string> text() const;
  [[nodiscard]] std::optional<std::uint32_t> number(std::uint32_t least, std::uint32_t most) const;
  [[nodiscard]] std::optional<bool> boolean() const;
  /// One of `words`, by its index.
  [[nodiscard]] std::optional<std::size_t> choice(std::span<const std::string_view> words) const;
  /// The result of a parser from base/units.h.
  template <class T>
  [[nodiscard]] std::optional<T> parsed(std::expected<T, std::string> (*parse)(std::string_view)) const;

  /// The items of a list; reports an error if it is not one.
  [[nodiscard]] std::vector<Value> items() const;
  /// The items of a list, or the single scalar.
  [[nodiscard]] std::vector<Value> one_or_more() const;
  /// The entries of a map with user-defined keys.
  [[nodiscard]] std::vector<std::pair<Text, Value>> entries() const;
  [[nodiscard]] Value child(const Entry& entry) const;

 private:
  const Node* node_;
  std::string path_;
  Problems* problems_;
  SourceSpan key_;
};

template <class T>
std::optional<T> Value::parsed(std::expected<T, std::string> (*parse)(std::string_view)) const {
  const auto read = text();
  if (!read) return std::nullopt;
  auto result = parse(*read);
  if (!result) {
    error("config.unit", fmt::format("'{}': {}", path_, result.error()));
    return std::nullopt;
  }
  return std::move(*result);
}

/// Strings, each with its location.
std::vector<Text> texts(const std::vector<Value>& values);

namespace detail {

template <class T>
struct Bare {
  using type = T;
};
template <class T>
struct Bare<std::optional<T>> : Bare<T> {};
template <class T>
struct Bare<Located<T>> : Bare<T> {};

template <class T>
std::optional<T> read_as(const Value& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.text();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.boolean();
  } else if constexpr (std::is_same_v<T, Duration>) {
    return value.parsed(parse_duration);
  } else if constexpr (std::is_same_v<T, VersionRange>) {
    return value.parsed(VersionRange::parse);
  } else {
    const auto index = value.choice(kWords<T>);
    return index ? std::optional(kValues<T>[*index]) : std::nullopt;
  }
}

template <class T>
void store(T value, const SourceSpan&, T& target) {
  target = std::move(value);
}
template <class T>
void store(T value, const SourceSpan& span, Located<T>& target) {
  target = {std::move(value), span};
}
template <class T, class Target>
void store(T value, const SourceSpan& span, std::optional<Target>& target) {
  store(std::move(value), span, target.emplace());
}

}  // namespace detail

/// A map with known keys. Reading a key makes it known; `finish` reports the others.
class Keys {
 public:
  explicit Keys(const Value& value);

  /// The value of a key, or nothing.
  [[nodiscard]] std::optional<Value> get(std::string_view key);
  /// The same; reports an error if the key is missing.
  [[nodiscard]] std::optional<Value> require(std::string_view key, std::string_view example);

  /// Reads a key, if present, into a value, a Located or an optional of one.
  template <class Target>
  void read(std::string_view key, Target& target) {
    if (const auto value = get(key)) {
      using Bare = typename detail::Bare<Target>::type;
      if (auto result = detail::read_as<Bare>(*value))
        detail::store(std::move(*result), value->span(), target);
    }
  }
  template <class Target>
  void number(std::string_view key, Target& target, std::uint32_t least, std::uint32_t most) {
    if (const auto value = get(key)) {
      if (const auto result = value->number(least, most)) detail::store(*result, value->span(), target);
    }
  }
  /// A list of strings, or one string.
  void list(std::string_view key, std::vector<Text>& target);
  /// A map from names to strings.
  void pairs(std::string_view key, std::vector<std::pair<Text, Text>>& target);

  [[nodiscard]] const Value& value() const { return value_; }
  /// Reports the keys of the map that were never read.
  [[nodiscard]] std::vector<const Entry*> unknown() const;
  [[nodiscard]] const std::vector<std::string>& known() const { return known_; }
  void finish();

 private:
  Value value_;
  std::vector<std::string> known_;
};

/// Reports an unknown name, with the nearest of `candidates`.
void report_unknown(Problems& problems, std::string id, const Text& name, std::string message,
                    std::span<const std::string> candidates);

}  // namespace nlaunch::config
