#pragma once
#include <nlohmann/json_fwd.hpp>

#include "preflight/preflight.h"

namespace nlaunch::preflight {

/// {check,status,subject,value,expected,fix,who[,hosts]}
nlohmann::json to_json(const Row& row);
/// The reverse; anything that is not a row throws.
nlohmann::json to_json(const Figure& figure);
nlohmann::json to_json(const NodeSummary& node);
Figure figure_from_json(const nlohmann::json& from);
NodeSummary summary_from_json(const nlohmann::json& from);
Row row_from_json(const nlohmann::json& from);

/// {"level","verdict","elapsed" (s),"cancelled","plan","site","time" (Unix),"job","fail_count","rows":[...],
///  "measurements":[{group,kind,op,backend,ranks,bytes,seconds,busbw[,floor,limit]}],"figures":[...],"nodes":[...]}
nlohmann::json to_json(const Report& report);
/// The reverse; anything that is not a report throws.
Report report_from_json(const nlohmann::json& from);

}  // namespace nlaunch::preflight
