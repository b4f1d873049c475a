#include "base/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace nlaunch {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr bool kQuiet = false;

bool is_too_deep(std::string_view text) {
  constexpr int kDeepest = 200;
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size() && depth <= kDeepest; ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      ++depth;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return depth > kDeepest;
}

template <class J>
J parse(std::string_view text) {
  return is_too_deep(text) ? J(J::value_t::discarded) : J::parse(text, nullptr, kQuiet);
}

}  // namespace

namespace {

/// JSON escapes ASCII control characters. DEL and the C1 controls (U+0080 to U+009F) also affect some
/// terminals.
std::string escape_controls(std::string text) {
  if (!text.contains('\x7f') && !text.contains('\xc2')) return text;  // nearly always, and fast
  for (std::size_t at = 0; (at = text.find_first_of("\x7f\xc2", at)) != std::string::npos; ++at) {
    const bool is_del = text[at] == '\x7f';
    const auto code = is_del                 ? 0x7fU
                      : at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1])
                                             : 0xffU;
    if (code < 0xa0U) text.replace(at, is_del ? 1 : 2, fmt::format("\\u{:04x}", code));
  }
  return text;
}

}  // namespace

std::string json_text(const json& json, int indent) {
  return escape_controls(json.dump(indent, ' ', false, json::error_handler_t::replace));
}
std::string json_text(const ordered_json& json, int indent) {
  return escape_controls(json.dump(indent, ' ', false, ordered_json::error_handler_t::replace));
}

void write_json(const ordered_json& object, const JsonElements& elements, const JsonSink& out) {
  constexpr int kIndent = 2;
  const auto text = json_text(object, kIndent);
  const auto empty = fmt::format("\n  \"{}\": []", elements.member);
  const auto at = text.find(empty);
  if (elements.count == 0 || at == std::string::npos) return out(text);
  const auto end = at + empty.size() - 1;  // the closing bracket
  out(std::string_view(text).substr(0, end));
  for (std::size_t i = 0; i < elements.count; ++i) {
    std::string element = i == 0 ? "\n    " : ",\n    ";
    for (const char c : json_text(elements.at(i), kIndent)) {
      element += c;
      if (c == '\n') element += "    ";
    }
    out(element);
  }
  out("\n  ");
  out(std::string_view(text).substr(end));
}

json parse_json(std::string_view text) {
  return parse<json>(text);
}
ordered_json parse_ordered_json(std::string_view text) {
  return parse<ordered_json>(text);
}
json parse_json_or_throw(std::string_view text) {
  if (is_too_deep(text)) throw json::parse_error::create(101, 0, "more than 200 levels", nullptr);
  return json::parse(text);
}

}  // namespace nlaunch
