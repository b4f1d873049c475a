#pragma once
#include <string_view>

namespace nlaunch::config {

/// The JSON schemas (draft 2020-12) of the two files, by which editors complete and check them.
std::string_view experiment_schema();
std::string_view site_schema();

}  // namespace nlaunch::config
