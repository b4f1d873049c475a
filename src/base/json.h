#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace nlaunch {

/// JSON as text. What comes from elsewhere (an argument, a path, a line of a log) need not be UTF-8: such
/// bytes become U+FFFD here, where dump() throws. So this is the only place that calls it.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nlaunch
