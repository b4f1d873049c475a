#include "config/reader.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace nlaunch::config {
namespace {

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return fmt::format("{}'{}'", node.plain ? "" : "the string ", node.text);
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return {};
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Some YAML parsers read 010 as 8, others as 10, so it is rejected.
std::string leading_zero_hint(const std::string& text) {
  const auto first = text.find_first_not_of('0');
  return fmt::format("write {}: some programs read a leading zero as octal",
                     first == std::string::npos ? "0" : text.substr(first));
}

}  // namespace

Diagnostic& Value::error(std::string id, std::string message) const {
  return problems_->error(std::move(id), span(), std::move(message));
}

Diagnostic& Value::wrong_type(std::string_view wanted) const {
  if (is(Node::Kind::null)) {
    auto& problem = error("config.empty-value", fmt::format("'{}' has no value", path_));
    problem.hint = fmt::format("it must be {}", wanted);
    return problem;
  }
  return error("config.type", fmt::format("'{}' must be {}, found {}", path_, wanted, describe(*node_)));
}

std::optional<std::string> Value::text() const {
  if (is(Node::Kind::scalar)) return node_->text;
  auto& problem = wrong_type("a string");
  // In a file, the source line shows the problem; on the command line, the shell removes quotes.
  if (is(Node::Kind::null) && span().file->name == "--set") {
    problem.hint = fmt::format("to set an empty string: --set \"{}=''\"", path_);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Value::number(std::uint32_t least, std::uint32_t most) const {
  const auto& text = node_->text;
  if (!is(Node::Kind::scalar) || !node_->plain || !is_digits(text)) {
    auto& problem = wrong_type("a whole number");
    if (is(Node::Kind::scalar) && is_digits(text)) problem.hint = "remove the quotes";
    return std::nullopt;
  }
  if (text.size() > 1 && text[0] == '0') {
    error("config.number", fmt::format("'{}': {} has a leading zero", path_, text)).hint =
        leading_zero_hint(text);
    return std::nullopt;
  }
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || value < least || value > most) {
    error("config.number", fmt::format("'{}' must be from {} to {}, found {}", path_, least, most, text));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Value::boolean() const {
  const auto& text = node_->text;
  if (is(Node::Kind::scalar) && node_->plain && (text == "true" || text == "false")) return text == "true";
  auto& problem = wrong_type("true or false");
  const auto word = text::lower(text);
  if (word == "yes" || word == "on" || word == "true") problem.hint = "write true, without quotes";
  if (word == "no" || word == "off" || word == "false") problem.hint = "write false, without quotes";
  return std::nullopt;
}

std::optional<std::size_t> Value::choice(std::span<const std::string_view> words) const {
  const auto word = text();
  if (!word) return std::nullopt;
  const auto found = std::ranges::find(words, std::string_view(*word));
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::vector<std::string> allowed(words.begin(), words.end());
  error("config.choice", fmt::format("'{}' must be {}{}, found '{}'", path_,
                                     words.size() > 1 ? "one of " : "", text::join(allowed, ", "), *word))
      .hint = text::nearest(*word, allowed) ? suggest(*word, allowed) : "";
  return std::nullopt;
}

Value Value::child(const Entry& entry) const {
  const auto& key = entry.key.value;
  return {entry.value, path_.empty() ? key : fmt::format("{}.{}", path_, key), *problems_, entry.key.span};
}

std::vector<Value> Value::items() const {
  std::vector<Value> out;
  if (!is(Node::Kind::sequence)) {
    wrong_type("a list");
    return out;
  }
  for (const auto& item : node_->items)
    out.emplace_back(item, fmt::format("{}[{}]", path_, out.size()), *problems_);
  return out;
}

std::vector<Value> Value::one_or_more() const {
  if (is(Node::Kind::scalar)) return {*this};
  return items();
}

std::vector<std::pair<Text, Value>> Value::entries() const {
  std::vector<std::pair<Text, Value>> out;
  if (!is(Node::Kind::map)) wrong_type("a map");
  for (const auto& entry : node_->entries) out.emplace_back(entry.key, child(entry));
  return out;
}

std::vector<Text> texts(const std::vector<Value>& values) {
  std::vector<Text> out;
  for (const auto& value : values) {
    if (auto text = value.text()) out.push_back({std::move(*text), value.span()});
  }
  return out;
}

Keys::Keys(const Value& value) : value_(value) {
  if (!value.is(Node::Kind::map)) value.wrong_type("a map");
}

std::optional<Value> Keys::get(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const auto* entry = value_.node().entry(key);
  return entry == nullptr ? std::nullopt : std::optional(value_.child(*entry));
}

std::optional<Value> Keys::require(std::string_view key, std::string_view example) {
  auto value = get(key);
  if (!value && value_.is(Node::Kind::map)) {
    const auto in = value_.path().empty() ? "the file" : fmt::format("'{}'", value_.path());
    value_.problems()
        .error("config.missing-key", value_.key_span(), fmt::format("{} needs '{}'", in, key))
        .hint = fmt::format("write {}", example);
  }
  return value;
}

void Keys::list(std::string_view key, std::vector<Text>& target) {
  if (const auto value = get(key)) target = texts(value->one_or_more());
}

void Keys::pairs(std::string_view key, std::vector<std::pair<Text, Text>>& target) {
  const auto value = get(key);
  if (!value) return;
  for (const auto& [name, item] : value->entries()) {
    if (auto text = item.text()) target.emplace_back(name, Text{std::move(*text), item.span()});
  }
}

std::vector<const Entry*> Keys::unknown() const {
  std::vector<const Entry*> out;
  for (const auto& entry : value_.node().entries) {
    if (std::ranges::find(known_, entry.key.value) == known_.end()) out.push_back(&entry);
  }
  return out;
}

void Keys::finish() {
  const auto in = value_.path().empty() ? "the file" : fmt::format("'{}'", value_.path());
  for (const auto* entry : unknown()) {
    report_unknown(value_.problems(), "config.unknown-key", entry->key,
                   fmt::format("unknown key '{}' in {}", entry->key.value, in), known_);
  }
}

void report_unknown(Problems& problems, std::string id, const Text& name, std::string message,
                    std::span<const std::string> candidates) {
  auto& problem = problems.error(std::move(id), name.span, std::move(message));
  if (!problems.full()) problem.hint = suggest(name.value, candidates);
}

}  // namespace nlaunch::config
