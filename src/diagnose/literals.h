#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// Texts of which every match of `pattern` (RE2's syntax) contains at least one, whatever the case of its
/// letters: the longest that can be derived from the pattern, in lower case. Empty if there is none.
std::vector<std::string> required_literals(std::string_view pattern);

}  // namespace nlaunch::diagnose
