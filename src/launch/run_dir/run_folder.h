#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/plan.h"

/// Where runs are: RUNS/NAME/RUN-ID, with RUNS/NAME/latest.
namespace nlaunch::launch {

/// The time and the pid. Another machine, or another container of this one, may make the same.
std::string new_run_id();

/// Makes the folder of a new run, mode 0700, which no other run has: where there is one of that id, its id is
/// ID-2, ID-3, ... RunPaths::attempt is empty.
Result<RunPaths> make_run_folder(const std::filesystem::path& runs, const std::string& name,
                                 const std::string& id = new_run_id());

/// The number after the last attempt that the run has: 0, but for a job that was requeued.
unsigned next_attempt(const RunPaths& paths);

/// Makes attempt-N of a run with the folders in it; RunPaths::attempt is set.
Result<void> make_attempt_folder(RunPaths& paths, unsigned attempt);

/// Points a link at a neighbour, in one step: it always points somewhere.
Result<void> point_link(const std::filesystem::path& link, const std::string& target);

/// Points `latest` at a run that has been started: one that was refused hides none that did.
Result<void> point_latest(const RunPaths& paths);

/// The runs of one name, the newest first.
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& folder_of_name);

/// The run that a person means: a path of a run, a run id, a name, or the id of a job of Slurm. Of several it
/// is the newest that is alive, which the very newest also is while its job waits; else the newest that was
/// started, else the newest. A failure says what there is.
Result<std::filesystem::path> find_run(const std::filesystem::path& runs, const std::string& run,
                                       const std::function<bool(const std::filesystem::path&)>& alive);

/// A plan that was frozen, which somebody names.
Result<plan::Plan> read_plan(const std::string& file);
/// That of a run.
Result<plan::Plan> plan_of_run(const std::filesystem::path& run);

}  // namespace nlaunch::launch
