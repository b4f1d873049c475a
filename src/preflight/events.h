#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "preflight/evidence.h"

namespace nlaunch::preflight {

/// Adds what one line of a rank's probe says to its report (src/probe/rank.h has the lines). False for a line
/// that is no event.
bool read_event(std::string_view line, RankReport& report);
bool read_event(const nlohmann::json& line, RankReport& report);

}  // namespace nlaunch::preflight
