#pragma once
#include <nlohmann/json.hpp>

#include "preflight/preflight.h"

namespace nlaunch::preflight {

/// {check,status,subject,value,expected,fix,who[,hosts]}
nlohmann::json to_json(const Row& row);
/// Back again; what is no row is an exception.
Row row_from_json(const nlohmann::json& from);

/// {"level","verdict","elapsed" (s),"cancelled","rows":[...],
///  "measurements":[{group,op,backend,ranks,bytes,seconds,busbw}],"fail_count"}
nlohmann::json to_json(const Report& report);
/// Back again; what is no report is an exception.
Report report_from_json(const nlohmann::json& from);

}  // namespace nlaunch::preflight
