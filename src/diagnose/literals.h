#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// Texts of which every match of `pattern` (RE2's syntax) holds at least one, whatever the case of its
/// letters: the longest that the pattern lets one tell, in lower case. Empty where it promises none.
std::vector<std::string> required_literals(std::string_view pattern);

}  // namespace nlaunch::diagnose
