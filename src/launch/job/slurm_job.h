#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// Slurm jobs from the login node: submission and state.
namespace nlaunch::launch {

/// The first of the site's submit commands that is on PATH. A failure says what to do instead.
Result<std::string> find_submit_command(const plan::Plan& plan, const std::vector<std::string>& environment);

/// Submits a script with that command and further `options`, and returns the job id. If Slurm refuses, the
/// failure has its message and the place in the profile or experiment of each directive that it names.
Result<std::string> submit_job(const plan::Plan& plan, const std::string& command,
                               const std::filesystem::path& script,
                               const std::vector<std::string>& environment,
                               const std::vector<std::string>& options = {});

/// The job id in the output of a submit command: "Submitted batch job 17 on cluster gpu2", else a line that
/// is an id ("17", or "17;gpu2"), else the last number. Empty if there is none.
std::string submitted_id(std::string_view said);

/// Runs one Slurm command about a job, such as `scancel 17` or `scontrol requeue 17`.
Result<void> tell_slurm(std::vector<std::string> command, const std::vector<std::string>& environment);

/// How long after SIGTERM Slurm sends SIGKILL to a job that it ends: its KillWait. If Slurm does not answer,
/// its default.
Duration kill_wait(const std::vector<std::string>& environment);
/// From the output of `scontrol show config`. Empty if it is not there.
std::optional<Duration> parse_kill_wait(std::string_view config);

struct JobState {
  std::string state;   ///< "PENDING", "RUNNING", "COMPLETED", "CANCELLED", ...
  std::string reason;  ///< why it is pending, or how it ended: "Resources", "NonZeroExitCode"
  std::string start;   ///< when it started, or is expected to; empty: unknown
  std::string nodes;   ///< as a Slurm node list; empty: none yet
  std::string log;     ///< path of its log

  [[nodiscard]] bool pending() const;
  /// It will not run any more.
  [[nodiscard]] bool over() const;
};

/// The fields of one line of `scontrol -o show job`. Empty if it is not such a line.
std::optional<JobState> parse_job_state(std::string_view line);

/// The component of a heterogeneous job that contains this node, from the output of `scontrol -o show job`
/// for all components; empty if the job has no components, or none contains it.
std::optional<std::uint32_t> parse_component(std::string_view lines, std::string_view node);
/// The same by job id; empty if Slurm does not answer.
std::optional<std::uint32_t> component_of(const std::string& job_id, const std::string& node,
                                          const std::vector<std::string>& environment);

/// Empty for a job that Slurm no longer knows.
Result<std::optional<JobState>> job_state(const std::string& job_id,
                                          const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
