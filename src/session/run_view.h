#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

/// A run as its events tell it, for the commands that look at one from another terminal.
namespace nlaunch::session {

struct ProcessView {
  std::string name;   ///< "learner.0"
  std::string host;   ///< name of its node; empty in a run of one machine
  std::string state;  ///< "running", "ready", "exited with code 0"
  pid_t pid = 0;
  bool here = false;  ///< its pid is of this machine
  bool alive = false;
};

struct RunView {
  std::filesystem::path folder;
  std::string name;  ///< of the experiment
  std::string id;
  pid_t pid = 0;           ///< of nlaunch, that the user sees
  std::string job;         ///< of Slurm; empty: none
  bool elsewhere = false;  ///< nlaunch runs on another host: only its events tell how it is
  bool alive = false;
  std::string
      state;  ///< "running", or its outcome; "ended without a word" for a run of which nothing is left
  std::string since;   ///< UTC: when it came to that state
  std::string ending;  ///< why its present attempt is being ended; empty: it goes on, or is over
  unsigned attempt = 0;
  std::vector<ProcessView> processes;
};

/// How a person names a run, for the help of options.
inline constexpr const char* kRunHelp =
    "A run's path, id or name, or its Slurm job (the live one, else its latest)";

/// The folder of the run that a person means, as launch::find_run finds it.
Result<std::filesystem::path> find_run(const std::string& runs_dir, const std::string& run);

/// Of all runs of a directory, the newest that is alive, else the newest.
Result<std::filesystem::path> newest_run(const std::string& runs_dir);

/// The run that a person means, with what its events tell.
Result<RunView> view_run(const std::string& runs_dir, const std::string& run);

/// The id of the job that a run was submitted as; empty where it was not.
std::string submitted_job(const std::filesystem::path& folder);

/// Nothing where the run directory is the caller's; else a failure: what its files say is not acted upon.
Result<void> check_owner(const RunView& view);

/// Whether the nlaunch of this pid, or a child of it, writes the events of this run: in a folder that was
/// copied or changed the pid is another run's.
bool writes_its_events(const RunView& view);

/// Whether this pid is nlaunch's of that run: a pid is used again some day.
bool is_process_of(pid_t pid, const std::string& variable, const std::string& value);

}  // namespace nlaunch::session
