#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// JSON parsing and writing. The library's reader and writer are compiled once, in json.cpp: code that only
/// passes a value on includes this file instead of `nlohmann/json.hpp`.
namespace nlaunch {

/// `indent`: -1 writes one line. Data from outside (an argument, a path, a log line) is not always valid
/// UTF-8: invalid bytes become U+FFFD here, while dump() throws. For this reason nothing else calls dump().
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

/// The elements of a member of an object, made one by one.
struct JsonElements {
  std::string_view member;
  std::size_t count = 0;
  std::function<nlohmann::ordered_json(std::size_t index)> at;
};
/// Takes the text of an object piece by piece.
using JsonSink = std::function<void(std::string_view text)>;
/// The text of an object, indented by 2, whose member has these elements; it is an empty array in `object`.
/// The values of a long list at once take several times the memory of their text. If `object` has no such
/// member, the elements are left out.
void write_json(const nlohmann::ordered_json& object, const JsonElements& elements, const JsonSink& out);

/// The value is discarded (`is_discarded()`), and not an object, if the text is not JSON or has more than 200
/// levels: walking and destroying a value uses stack space for each level.
nlohmann::json parse_json(std::string_view text);
/// With the keys in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);
/// Throws nlohmann::json::parse_error, whose message contains the position.
nlohmann::json parse_json_or_throw(std::string_view text);

}  // namespace nlaunch
