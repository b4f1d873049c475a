#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::diagnose {

/// A run directory of nlaunch, as far as a diagnosis needs it.
struct RunFolder {
  std::vector<std::filesystem::path> logs;  ///< of its last attempt, sorted
  bool failed = false;                      ///< its summary says so
  std::string first;                        ///< the process that failed first: "learner.1"; may be empty
  std::optional<int> code;                  ///< the exit code of that process
  std::string what;                         ///< how it ended, in a sentence
  Diagnostics unread;                       ///< its summary is of a newer format: the last four are not known
};

/// Nothing where `folder` is no run directory.
std::optional<RunFolder> read_run_folder(const std::filesystem::path& folder);

/// The process that a file of a run directory belongs to, by its path: "learner.0"; empty for any other file.
std::string process_of_file(const std::string& path);

}  // namespace nlaunch::diagnose
