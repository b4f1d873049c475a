#pragma once
#include <string>
#include <vector>

#include "record/run_files.h"

namespace nlaunch::record {

/// "torch", "2.5.1", "lock.json, wheels of /x/.venv".
struct VersionRow {
  std::string what;
  std::string version;
  std::string from;
};

/// The versions in the run's files of what the run used.
std::vector<VersionRow> versions_of(const RunFiles& run);

/// Versions on this machine, now: OS, kernel, C library, NVIDIA driver, nlaunch.
std::vector<VersionRow> versions_here();

/// {"what": [{"version", "from"}]}
Json to_json(const std::vector<VersionRow>& rows);

}  // namespace nlaunch::record
