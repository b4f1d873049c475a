#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// A job of Slurm from the login node: submitting it, and how it is.
namespace nlaunch::launch {

/// The first of the site's submit commands that is on PATH. A failure says what to do without one.
Result<std::string> find_submit_command(const plan::Plan& plan, const std::vector<std::string>& environment);

/// Submits a script with that command and further `options`, and returns the job's id. Its refusal is a
/// failure with its words, and with the place in the profile or experiment of the directives that they name.
Result<std::string> submit_job(const plan::Plan& plan, const std::string& command,
                               const std::filesystem::path& script,
                               const std::vector<std::string>& environment,
                               const std::vector<std::string>& options = {});

/// The id of a job in what a submit command printed: "Submitted batch job 17 on cluster gpu2", else a line
/// that is an id ("17", or "17;gpu2"), else the last number. Empty where there is none.
std::string submitted_id(std::string_view said);

/// One word to Slurm about a job, as `scancel 17` or `scontrol requeue 17`.
Result<void> tell_slurm(std::vector<std::string> command, const std::vector<std::string>& environment);

/// How long after SIGTERM Slurm sends SIGKILL to a job that ends: its KillWait. Without an answer, what it is
/// where nobody has changed it.
Duration kill_wait(const std::vector<std::string>& environment);
/// From what `scontrol show config` prints. Nothing where it does not say it.
std::optional<Duration> parse_kill_wait(std::string_view config);

struct JobState {
  std::string state;   ///< "PENDING", "RUNNING", "COMPLETED", "CANCELLED", ...
  std::string reason;  ///< why it is pending, or how it ended: "Resources", "NonZeroExitCode"
  std::string start;   ///< when it started, or is expected to; empty: not known
  std::string nodes;   ///< as a list of Slurm's; empty: none yet
  std::string log;     ///< path of its own log

  [[nodiscard]] bool pending() const;
  /// It will not run any more.
  [[nodiscard]] bool over() const;
};

/// The fields of one line of `scontrol -o show job`. Nothing where it is none.
std::optional<JobState> parse_job_state(std::string_view line);

/// The component of a heterogeneous job that has this node, from what `scontrol -o show job` says of all of
/// them; nothing where the job has no components, or none has it.
std::optional<std::uint32_t> parse_component(std::string_view lines, std::string_view node);
/// The same of a job; nothing where Slurm does not answer.
std::optional<std::uint32_t> component_of(const std::string& job_id, const std::string& node,
                                          const std::vector<std::string>& environment);

/// Nothing for a job that Slurm does not know any more.
Result<std::optional<JobState>> job_state(const std::string& job_id,
                                          const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
