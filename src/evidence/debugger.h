#pragma once
#include <string>
#include <vector>

#include "evidence/source.h"

namespace nlaunch::evidence {

/// Looks for a program where the process itself would find it, in its virtual environment and then on its
/// PATH, and last on this process's own. Empty: it is not there.
std::string find_tool(const std::string& name, pid_t pid);

/// Why the kernel does not let this process look into `pid`, and what would permit it; for a tool that
/// failed with `complaint`.
Missing refused(const std::string& what, const std::string& complaint);

}  // namespace nlaunch::evidence
