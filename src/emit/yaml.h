#pragma once
#include <string>
#include <string_view>

namespace nlaunch::emit {

/// A text as a YAML scalar that every parser reads back unchanged: in double quotes, on one line. The text
/// must be UTF-8.
std::string yaml_quote(std::string_view text);

}  // namespace nlaunch::emit
