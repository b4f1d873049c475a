#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Adds one line printed by a rank's probe to its report (src/probe/rank/rank.cpp lists the lines). False for
/// a line that is not an event.
bool read_event(std::string_view line, RankReport& report);
bool read_event(const nlohmann::json& line, RankReport& report);

}  // namespace nlaunch::preflight
