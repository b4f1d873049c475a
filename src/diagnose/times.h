#pragma once
#include <optional>
#include <string_view>

namespace nlaunch::diagnose {

/// The first date with a time in a line, in seconds since 1970 in its own clock, ignoring time zones:
/// "2024-03-12 02:29:19,487", "2025-01-21T04:41:44.283", "2024-10-09_21:16:02".
std::optional<double> time_of(std::string_view line);

}  // namespace nlaunch::diagnose
