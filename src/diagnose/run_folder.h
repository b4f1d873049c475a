#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "diagnose/standing.h"

namespace nlaunch::diagnose {

/// A shell adds it to the number of the signal that ended a process.
inline constexpr int kOfSignals = 128;

/// A run directory of nlaunch, as far as a diagnosis needs it.
struct RunFolder {
  std::vector<std::filesystem::path> logs;  ///< of its last attempt: of the process that failed first, then by name
  bool failed = false;                      ///< its summary says so
  std::string first;                        ///< the process that failed first: "learner.1"; may be empty
  std::optional<int> code;                  ///< the exit code of that process, as a shell has it
  std::string what;                         ///< how it ended, in a sentence
  std::map<std::string, Standing> standing;  ///< by process
  Diagnostics unread;  ///< its summary is of a newer format: nothing but `logs` is known
};

/// Nothing where `folder` is no run directory.
std::optional<RunFolder> read_run_folder(const std::filesystem::path& folder);

/// The process that a file of a run directory belongs to, by its path: "learner.0"; empty for any other file.
std::string process_of_file(const std::string& path);

}  // namespace nlaunch::diagnose
