#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "import/arithmetic.h"
#include "import/values.h"

/// The half of Values that looks into `$(…)`, `${…}` and `$((…))`.
namespace nlaunch::import {
namespace {

/// How many elements there are is known: none of them may become several.
bool counted(const std::vector<lint::Word>& elements) {
  return std::ranges::all_of(elements, [](const lint::Word& one) {
    return one.quoted || std::ranges::all_of(one.parts, [](const auto& part) {
             return part.kind == lint::Part::Kind::text &&
                    part.text.find_first_of("*?{") == std::string::npos;
           });
  });
}

bool calls_for_node(std::string_view name) {
  const auto lower = text::lower(name);
  return lower.contains("node") || lower.contains("host");
}

}  // namespace

Value Values::expansion(const std::string& written, unsigned depth) const {
  if (written.size() < 4 || !may_go_on(depth)) return Value::shell(written);
  if (written.starts_with("${")) return braces(written, depth);
  if (written.starts_with("$((")) {
    const auto number = arithmetic(std::string_view(written).substr(3, written.size() - 5),
                                   [this](const std::string& name) { return this->number(name); });
    return number ? Value::just(std::to_string(*number)) : Value::shell(written);
  }
  return output(written, depth);
}

std::optional<long> Values::number(const std::string& name) const {
  if (const auto number = numbers_.find(name); number != numbers_.end()) return number->second;
  const auto known = known_.find(name);
  const auto value = known == known_.end() ? "" : known->second.value.text().value_or("");
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = !value.empty() && error == std::errc() && end == value.data() + value.size();
  return whole ? std::optional<long>(number) : std::nullopt;
}

/// `${NAME:-default}` and its kin, `${ARRAY[0]}`.
Value Values::braces(const std::string& written, unsigned depth) const {
  const auto inner = std::string_view(written).substr(2, written.size() - 3);
  std::size_t length = 0;
  while (length < inner.size() && is_name_character(inner[length])) ++length;
  const auto name = std::string(inner.substr(0, length));
  auto rest = inner.substr(length);
  if (name.empty() && inner.starts_with('#') && inner.size() > 4 && inner.ends_with("]"))
    return count_of(std::string(inner.substr(1, inner.find('[') - 1)), written);
  if (name.empty()) return Value::shell(written);
  if (rest.starts_with('[') && rest.ends_with(']'))
    return element(name, rest.substr(1, rest.size() - 2), written, depth);
  if (rest.starts_with(':')) rest.remove_prefix(1);
  if (rest.empty() || (rest[0] != '-' && rest[0] != '=' && rest[0] != '?')) return Value::shell(written);
  const bool message = rest[0] == '?';
  const auto value = variable(name);
  const auto plain = value.text().value_or("");
  const auto asks = fmt::format("${{env.{}:-}}", name);
  const bool missing = given_ && value.text() == "" && name[0] >= '1' && name[0] <= '9';  // of a function
  if (plain != asks && !missing) return value;
  if (message) return Value::just(fmt::format("${{env.{}}}", name));
  const auto fallback = read(rest.substr(1), depth + 1);
  const auto text = fallback.text();
  if (!text || missing) return fallback;
  // What would close the reference too early cannot be a default.
  const bool odd = text->contains("$${") || std::ranges::count(*text, '}') != std::ranges::count(*text, '{');
  return odd ? fallback : Value::just(fmt::format("${{env.{}:-{}}}", name, *text));
}

Value Values::element(const std::string& name, std::string_view index, const std::string& written,
                      unsigned depth) const {
  const auto known = known_.find(name);
  const auto known_array = known != known_.end();
  const bool nodes = known_array && known->second.value.has(Piece::Kind::head);
  if (index == "0" && (nodes || (!known_array && calls_for_node(name)))) return Value::head();
  if (!known_array || nodes) return Value::shell(written);
  const auto& elements = known->second.elements;
  if (elements.empty() && !known->second.array && index == "0") return known->second.value;
  Value found = Value::shell(written);
  if (index == "@" || index == "*") {
    found = {};
    for (const auto& one : elements) {
      if (!found.pieces.empty()) found.add({Piece::Kind::text, " "});
      for (auto piece : of(one, depth + 1).pieces) found.add(std::move(piece));
    }
  } else if (counted(elements)) {
    auto at = arithmetic(index, [this](const std::string& one) { return this->number(one); });
    if (index.starts_with('-'))
      at = arithmetic(fmt::format("{}{}", elements.size(), index),
                      [](const auto&) { return std::optional<long>(); });
    if (at && *at >= 0 && *at < static_cast<long>(elements.size()))
      found = of(elements[static_cast<std::size_t>(*at)], depth + 1);
  }
  found.word = nullptr;
  for (const auto& doubt : known->second.value.doubts) found.doubt(doubt);
  return found;
}

Value Values::count_of(const std::string& name, const std::string& written) const {
  const auto known = known_.find(name);
  if (known == known_.end()) return Value::shell(written);
  const auto nodes = numbers_.find("SLURM_NNODES");
  if (known->second.value.has(Piece::Kind::head) && nodes != numbers_.end())
    return Value::just(std::to_string(nodes->second));
  if (!known->second.array || !counted(known->second.elements)) return Value::shell(written);
  auto value = Value::just(std::to_string(known->second.elements.size()));
  value.doubts = known->second.value.doubts;
  return value;
}

/// `$(command)`.
Value Values::output(const std::string& written, unsigned depth) const {
  const auto text = std::string_view(written);
  if (text.contains("scontrol show hostname")) {
    auto value = Value::head();
    const bool one = text.contains("head") || text.contains("sed") || text.contains("awk") ||
                     text.contains("cut") || text.contains("grep");
    if (!one)
      value.doubt(
          {0, "the names of all nodes: here it is the first one's, and ${role.NAME.hosts} those of a role"});
    return value;
  }
  if (text.starts_with("$(pwd") || text.contains("git rev-parse --show-toplevel") ||
      text.contains("BASH_SOURCE") || text.contains("dirname \"$0\""))
    return Value::just(".");
  if (text == "$(whoami)") return Value::just("${env.USER}");
  const auto script = script_of(written.substr(2, written.size() - 3));
  if (script.commands.empty()) return Value::shell(written);
  for (const auto& command : script.commands) {
    for (const auto& word : command.words) {
      if (of(word, depth + 1).has(Piece::Kind::head)) return Value::head();
    }
  }
  const auto& command = script.commands.front();
  const auto name = command.name();
  if (name == "cat" && script.commands.size() == 1 && command.words.size() == 1 &&
      !command.heredocs.empty()) {
    auto value = of(word_of(command.heredocs.front()), depth + 1);
    value.word = nullptr;
    return value;
  }
  if (name == "hostname" || text.contains("$(hostname")) return Value::just("${self.host}");
  if (script.commands.size() == 1 && command.words.size() > 1 && (name == "realpath" || name == "readlink"))
    return of(command.words.back(), depth + 1);
  const bool first = script.commands.size() == 2 && script.commands.back().name() == "head";
  if (name == "ls" && first && command.words.size() == 3 && command.words[1].shown().contains("t")) {
    const auto glob = of(command.words.back(), depth + 1).text().value_or("");
    if (!glob.empty() && !glob.contains("$")) return Value::just(fmt::format("${{newest:{}}}", glob));
  }
  return Value::shell(written);
}

Value Values::read(std::string_view text, unsigned depth) const {
  if (text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  auto value = of(quoted_word(text), depth);
  value.word = nullptr;
  return value;
}

}  // namespace nlaunch::import
