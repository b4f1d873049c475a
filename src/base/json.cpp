#include "base/json.h"

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

std::string json_text(const json& json, int indent) {
  return json.dump(indent, ' ', false, json::error_handler_t::replace);
}
std::string json_text(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
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
