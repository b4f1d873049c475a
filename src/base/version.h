#pragma once
#include <string_view>

namespace nlaunch {

/// nlaunch's own version, "0.1.0": defined only in CMakeLists.txt.
std::string_view version();

}  // namespace nlaunch
