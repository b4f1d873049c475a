#pragma once
#include <nlohmann/json_fwd.hpp>

#include "supervise/process_backend.h"

/// Actions, notices and ends as messages between the one who decides and the agents of other nodes. What
/// cannot be read is an exception (nlohmann::json::exception or std::domain_error).
namespace nlaunch::supervise {

nlohmann::json to_message(const NodeAction& action);
NodeAction action_from(const nlohmann::json& message);

nlohmann::json to_message(const ProcessEvent& process_event);
ProcessEvent notice_from(const nlohmann::json& message);

nlohmann::json to_message(const BackendEnd& end);
BackendEnd end_from(const nlohmann::json& message);

}  // namespace nlaunch::supervise
