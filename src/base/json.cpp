#include "base/json.h"

#include <nlohmann/json.hpp>

namespace nlaunch {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr bool kQuiet = false;

}  // namespace

std::string json_text(const json& json, int indent) {
  return json.dump(indent, ' ', false, json::error_handler_t::replace);
}
std::string json_text(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

json parse_json(std::string_view text) {
  return json::parse(text, nullptr, kQuiet);
}
ordered_json parse_ordered_json(std::string_view text) {
  return ordered_json::parse(text, nullptr, kQuiet);
}
json parse_json_or_throw(std::string_view text) {
  return json::parse(text);
}

}  // namespace nlaunch
