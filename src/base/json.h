#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// JSON as text and back. The library's reader and writer are compiled once, in json.cpp: whoever only hands
/// a value on includes this and not `nlohmann/json.hpp`.
namespace nlaunch {

/// `indent`: -1 writes one line. What comes from elsewhere (an argument, a path, a line of a log) need not be
/// UTF-8: such bytes become U+FFFD here, where dump() throws. So this is the only place that calls it.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

/// The value is discarded (`is_discarded()`), and no object, where the text is no JSON, or has more than 200
/// levels: who walks through those, and their destruction, takes some of the stack for each.
nlohmann::json parse_json(std::string_view text);
/// With the keys in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);
/// Throws nlohmann::json::parse_error, whose text says where the mistake is.
nlohmann::json parse_json_or_throw(std::string_view text);

}  // namespace nlaunch
