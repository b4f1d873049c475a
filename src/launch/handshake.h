#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// How two of nlaunch's processes on different nodes make sure of each other before one does what the other
/// says. Both know a token, which never crosses the wire: each end is challenged with a number that is used
/// once, and signs what it says together with it.
namespace nlaunch::launch {

enum class End { host, pending };

/// A line that proves that who wrote it knows the token and heard `challenge`.
std::string signed_line(End by, std::string_view token, std::string_view challenge,
                        const nlohmann::json& says);

/// What a signed line says. Nothing for a line of anybody else.
std::optional<nlohmann::json> verified(End by, std::string_view token, std::string_view challenge,
                                       std::string_view line);

/// By which both ends can tell that they hold the same plan: 64 hexadecimal digits.
Result<std::string> fingerprint(const plan::Plan& plan);

/// 32 hexadecimal digits that nobody can guess: a token, or a challenge.
std::string new_token();

}  // namespace nlaunch::launch
