#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace nlaunch::import {

/// The file that gets the output of the command that begins at a line and a column of the script, both from
/// 1: as it is written behind `>`, `>>` or `| tee`. Empty where there is none, and for /dev/null.
std::string output_file(const std::vector<std::string>& lines, std::uint32_t line, std::uint32_t column);

}  // namespace nlaunch::import
