#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// What some sites put behind the name of a host for its address on another network: "i", "-ib0".
inline constexpr const char* kSuffixOfNetwork = R"([-.]?ib?\d?)";

/// Replaces what is made up in the recorded job with placeholders: hosts, addresses, the free port, the job's
/// id, the user. Lists those without a placeholder in `unknown`, each once. What the text of the script has
/// itself is not made up.
void refer_to_the_job(const shell::Allocation& allocation, const std::string& script, Imported& out,
                      std::vector<std::string>& unknown);

}  // namespace nlaunch::import
