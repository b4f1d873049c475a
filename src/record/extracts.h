#pragma once
#include <string>
#include <utility>
#include <vector>

#include "record/run_files.h"

namespace nlaunch::record {

/// Files that present a part of the run for people: a name and the content.
using Extracts = std::vector<std::pair<std::string, std::string>>;

/// "environment/ROLE.env": NAME=VALUE lines of the first process of each role on the first node of the last
/// attempt that was bound, quoted for a shell, followed by what differs in its other processes. The bundle
/// masks secrets in it.
Extracts environment_extracts(const RunFiles& run);

/// "modules.txt": what the plan loads, and what is loaded according to the environments of the roles. Empty
/// without modules.
Extracts module_extracts(const RunFiles& run);

}  // namespace nlaunch::record
