#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/plan.h"

/// Run directories: RUNS/NAME/RUN-ID, with RUNS/NAME/latest.
namespace nlaunch::launch {

/// From the time and the pid. Another machine, or another container on this one, may create the same id.
std::string new_run_id();

/// Creates the directory of a new run, mode 0700, that no other run has: if the id exists, it becomes ID-2,
/// ID-3, ... RunPaths::attempt is empty.
Result<RunPaths> make_run_folder(const std::filesystem::path& runs, const std::string& name,
                                 const std::string& id = new_run_id());

/// The number after the last attempt of the run: 0, except in a job that was requeued.
unsigned next_attempt(const RunPaths& paths);

/// Creates attempt-N of a run with its subdirectories; sets RunPaths::attempt.
Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt);

/// Points a link at a sibling, atomically: it is never dangling.
Result<void> point_link(const std::filesystem::path& link, const std::string& target);

/// Points `latest` at a run that has started: a run that was refused does not hide earlier ones.
Result<void> point_latest(const RunPaths& paths);

/// The runs of one name, the newest first.
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& folder_of_name);

/// The run that the user means: a run path, a run id, a name, or a Slurm job id. Among several it is the
/// newest that is alive (a run whose job waits counts if it is the newest of all), else the newest that was
/// started, else the newest. A failure lists what exists.
Result<std::filesystem::path> find_run(const std::filesystem::path& runs, const std::string& run,
                                       const std::function<bool(const std::filesystem::path&)>& alive);

/// A frozen plan that the user names.
Result<plan::Plan> read_plan(const std::string& file);
/// The plan of a run.
Result<plan::Plan> plan_of_run(const std::filesystem::path& run);

}  // namespace nlaunch::launch
