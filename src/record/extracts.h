#pragma once
#include <string>
#include <utility>
#include <vector>

#include "record/run_files.h"

namespace nlaunch::record {

/// Files that retell a part of the run in a form for people: a name, and the content.
using Extracts = std::vector<std::pair<std::string, std::string>>;

/// "environment/ROLE.env": NAME=VALUE lines of each role's first process on the first node of the last
/// attempt that was bound, quoted for a shell, with what differs in its other processes behind them. Masked
/// there.
Extracts environment_extracts(const RunFiles& run);

/// "modules.txt": what the plan loads, and what the roles' environments say is loaded. Empty without modules.
Extracts module_extracts(const RunFiles& run);

}  // namespace nlaunch::record
