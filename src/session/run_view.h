#pragma once
#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "supervise/links.h"

/// A run as recorded in its events, for commands in another terminal.
namespace nlaunch::session {

struct ProcessView {
  std::string name;   ///< "learner.0"
  std::string host;   ///< name of its node; empty in a run of one machine
  std::string state;  ///< "running", "ready", "exited with code 0"
  pid_t pid = 0;
  bool here = false;  ///< its pid belongs to this machine
  bool alive = false;
};

struct RunView {
  std::filesystem::path folder;
  std::string name;  ///< of the experiment
  std::string id;
  pid_t pid = 0;           ///< of nlaunch, as the user sees it
  std::string job;         ///< of Slurm; empty: none
  bool elsewhere = false;  ///< nlaunch runs on another host: only its events tell its state
  bool alive = false;
  std::string state;   ///< "running", or its outcome; "died without ..." if nothing of it is left
  std::string since;   ///< UTC: since when it is in that state
  std::string ending;  ///< why its current attempt is ending; empty: it is not ending, or has ended
  unsigned attempt = 0;
  std::string site;
  unsigned nodes = 0;              ///< 0: not known
  std::string started;             ///< UTC; of its first job
  std::string ended;               ///< UTC; empty: it runs, or died
  std::optional<int> exit_code{};  ///< of nlaunch
  bool preflight_only = false;     ///< `nlaunch preflight` made its directory
  std::vector<ProcessView> processes;
  std::vector<supervise::Link> links;
};

/// Seconds since 1970.
double unix_now();

/// How the user names a run, for the help of options.
inline constexpr const char* kRunHelp =
    "A run's path, id or name, or its Slurm job (the live run, else the latest)";

/// The directory of the run that the user names, as launch::find_run finds it.
Result<std::filesystem::path> find_run(const std::string& runs_dir, const std::string& run);

/// The newest run of a directory that is alive, else its newest run.
Result<std::filesystem::path> newest_run(const std::string& runs_dir);

/// The run that a person means, with what its events contain.
Result<RunView> view_run(const std::string& runs_dir, const std::string& run);

/// The id of the job that a run was submitted as; empty if it was not.
std::string submitted_job(const std::filesystem::path& folder);

/// Fails if the run directory does not belong to the caller: then the content of its files is not acted on.
Result<void> check_owner(const RunView& view);

/// The state of a run for which no nlaunch is left, though none has said how it ended.
inline constexpr const char* kDied = "died without writing a summary (nlaunch was killed)";
/// Whether the nlaunch that wrote this event, "run" or "taken-over", is alive. On another host it counts as
/// alive until the events say how the run ended.
bool is_led(const nlohmann::ordered_json& run);

/// Whether the nlaunch with this pid, or a child of it, writes the events of this run: in a directory that
/// was copied or changed, the pid belongs to another run.
bool writes_its_events(const RunView& view);

/// Whether this pid belongs to that run of nlaunch: pids are reused.
bool is_process_of(pid_t pid, const std::string& variable, const std::string& value);

}  // namespace nlaunch::session
