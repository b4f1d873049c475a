#pragma once
#include <filesystem>
#include <string>

#include "base/diagnostic.h"
#include "launch/bind.h"

/// Where runs are: RUNS/NAME/RUN-ID, with RUNS/NAME/latest.
namespace nlaunch::launch {

/// Makes the folder of a new run, mode 0700, and points `latest` at it. The id is the time and the pid,
/// unique on this machine. RunPaths::attempt is empty.
Result<RunPaths> make_run_folder(const std::filesystem::path& runs, const std::string& name);

/// Makes attempt-N of a run with the folders in it; RunPaths::attempt is set.
Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt);

/// The run that a person means: a path of a run, a run id, or a name (its latest). A failure says what there
/// is.
Result<std::filesystem::path> find_run(const std::filesystem::path& runs, const std::string& run);

}  // namespace nlaunch::launch
