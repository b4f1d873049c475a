#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lint/lint_input.h"

namespace nlaunch::launch {

/// Compares what NCCL read according to its logs of an attempt (nccl/PROCESS.HOST.PID.log, from the overlay
/// nccl-debug) with each role's environment: role → differences. Empty without such logs.
std::map<std::string, std::vector<std::string>> compare_nccl_logs(const std::filesystem::path& attempt,
                                                                  const lint::LintInput& input);

}  // namespace nlaunch::launch
