#pragma once
#include <nlohmann/json.hpp>

#include "supervise/crew.h"

/// Actions, notices and ends as messages between the one who decides and the agents of other nodes. What
/// cannot be read is an exception (nlohmann::json::exception or std::domain_error).
namespace nlaunch::supervise {

nlohmann::json to_message(const NodeAction& action);
NodeAction action_from(const nlohmann::json& message);

nlohmann::json to_message(const Notice& notice);
Notice notice_from(const nlohmann::json& message);

nlohmann::json to_message(const CrewEnd& end);
CrewEnd end_from(const nlohmann::json& message);

}  // namespace nlaunch::supervise
