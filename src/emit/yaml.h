#pragma once
#include <string>
#include <string_view>

namespace nlaunch::emit {

/// A text as a YAML scalar that every reader takes for this very text: in double quotes, on one line. The
/// text is UTF-8.
std::string yaml_quote(std::string_view text);

}  // namespace nlaunch::emit
