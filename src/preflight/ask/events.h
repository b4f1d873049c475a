#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Adds what one line of a rank's probe says to its report (src/probe/rank/rank.cpp has the lines). False for
/// a line that is no event.
bool read_event(std::string_view line, RankReport& report);
bool read_event(const nlohmann::json& line, RankReport& report);

}  // namespace nlaunch::preflight
