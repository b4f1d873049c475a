#pragma once
#include <string_view>

namespace nlaunch::config {

/// The JSON schemas (draft 2020-12) of the two files; editors use them for completion and validation.
std::string_view experiment_schema();
std::string_view site_schema();

}  // namespace nlaunch::config
