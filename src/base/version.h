#pragma once
#include <string_view>

namespace nlaunch {

/// nlaunch's own version, "0.1.0": that of CMakeLists.txt, where it stands once.
std::string_view version();

}  // namespace nlaunch
