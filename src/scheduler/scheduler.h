#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/registry.h"
#include "base/scheduler_traits.h"
#include "plan/plan.h"
#include "session/caller.h"
#include "session/job_chaining.h"
#include "session/run_target.h"

/// What starts jobs on a site, behind one interface. A scheduler is a directory of this layer, a row of
/// traits in base/scheduler_traits.cpp, and a part of the plan (plan/scheduler_part.h) if it has settings.
namespace nlaunch::scheduler {

/// The scheduler's job in which this process runs: an allocation or a replica.
class CurrentJob {
 public:
  CurrentJob() = default;
  virtual ~CurrentJob() = default;
  CurrentJob(const CurrentJob&) = delete;
  CurrentJob& operator=(const CurrentJob&) = delete;

  [[nodiscard]] virtual std::uint32_t nodes() const = 0;
  /// Why the plan cannot run in it, as a message; empty if it can.
  [[nodiscard]] virtual std::string misfit(const plan::Plan& plan) const = 0;
  /// Where the attempts of a run take place; null: on this machine alone. This object and all arguments must
  /// outlive it. `share`: use GPUs that another run holds.
  [[nodiscard]] virtual std::unique_ptr<session::RunTarget> target(const plan::Plan& plan, bool share,
                                                                   const session::Caller& caller) const = 0;
  /// Where results must be; empty: where the caller says.
  [[nodiscard]] virtual std::string runs_dir(const plan::Plan& /*plan*/) const { return ""; }
  /// True if another process of the job leads, and this one has to `follow` it.
  [[nodiscard]] virtual bool follows() const { return false; }
  /// The exit code of the run.
  virtual int follow(const plan::Plan& /*plan*/, const session::Caller& /*caller*/) const { return 0; }
  /// What continues the run after the walltime; null: nothing. All arguments must outlive it.
  [[nodiscard]] virtual std::unique_ptr<session::JobChaining> chaining(
      const plan::Plan& /*plan*/, const std::string& /*runs_dir*/,
      const std::vector<std::string>& /*arguments*/, const session::Caller& /*caller*/) const {
    return nullptr;
  }
  /// Why several runs cannot be compared in it, one after another; empty if they can.
  [[nodiscard]] virtual std::string no_comparison() const { return ""; }
};

/// A job in its scheduler's terms.
struct JobState {
  enum class Phase { pending, running, over };
  Phase phase = Phase::pending;
  std::string state;   ///< "PENDING", "COMPLETED", ...
  std::string reason;  ///< why it is pending, or how it ended; empty: not reported
  std::string start;   ///< when it is expected to start; empty: unknown
  std::string nodes;   ///< as the scheduler lists them; empty: none yet
  std::string log;     ///< path of its log; empty: unknown
};

enum class Cancel {
  waiting,   ///< remove it from the queue
  politely,  ///< as Ctrl-C would
  at_once,
};

/// The input for a job.
struct JobRequest {
  std::string runs_dir = "runs";
  std::string program{};                 ///< nlaunch
  std::vector<std::string> arguments{};  ///< of `nlaunch run`, for the job
  std::string output{};                  ///< the file to which the text is written
  std::string run_dir = {};              ///< run directory, if it exists already
};

/// The text for a scheduler, and how to submit it.
struct Rendered {
  std::string text;
  std::vector<std::string> submit;  ///< the command that submits JobRequest::output
  std::vector<std::string> notes;
  std::string log = {};  ///< path of the job's log, if its state does not report it
};

struct SubmitOptions {
  std::string runs_dir = "runs";
  bool detach = false;                 ///< do not follow
  std::vector<std::string> arguments;  ///< of `nlaunch run`, for the job
};

class Scheduler {
 public:
  Scheduler() = default;
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The job in which we run; null outside one. Contradictory variables are a failure.
  [[nodiscard]] virtual Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const = 0;
  /// Writes what the job refers to, and nothing if there can be no job.
  [[nodiscard]] virtual Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                                const std::vector<std::string>& environment) const = 0;
  /// Run where jobs are submitted: creates the run directory, submits the job that will use it, and follows
  /// it to its end if the scheduler allows that. Returns the exit code of the run, or 0 if it is not followed
  /// to the end.
  [[nodiscard]] virtual int submit(const plan::Plan& plan, const SubmitOptions& options,
                                   const session::Caller& caller) const = 0;
  /// Empty for a job that is no longer known.
  [[nodiscard]] virtual Result<std::optional<JobState>> state(
      const std::string& job, const std::vector<std::string>& environment) const = 0;
  [[nodiscard]] virtual Result<void> cancel(const std::string& job, Cancel how,
                                            const std::vector<std::string>& environment) const = 0;
};

/// A scheduler registers itself: const Registered<SchedulerEntry> slurm_scheduler{{"slurm", 0, the_slurm}};
struct SchedulerEntry {
  std::string_view name;  ///< of its traits
  int order = 0;
  const Scheduler& (*get)();
};

/// Null for a name that does not start jobs.
const Scheduler* find(std::string_view name);

/// The job of the plan's scheduler in which we run; null outside one, and if the name does not start jobs.
Result<std::unique_ptr<CurrentJob>> current_job(std::string_view name,
                                                const std::vector<std::string>& environment);

/// The same for a command that runs in the user's allocation; null if the scheduler has no allocations.
Result<std::unique_ptr<CurrentJob>> current_allocation(std::string_view name,
                                                       const std::vector<std::string>& environment);

/// Where commands of this plan must run, for a message elsewhere: "site 'x' is reached through Slurm, and
/// this is not an allocation".
std::string describe(const plan::Plan& plan);

}  // namespace nlaunch::scheduler
