#pragma once
#include <string>

namespace nlaunch::cli {

/// "nlaunch 0.1.0", and the libraries that its probe was built with.
std::string version_text();

}  // namespace nlaunch::cli
