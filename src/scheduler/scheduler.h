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

/// What starts jobs on a site, behind one interface. A scheduler is a folder of this layer, a row of traits
/// in base/scheduler_traits.cpp, and a part of the plan (plan/scheduler_part.h) where it has to be told
/// something.
namespace nlaunch::scheduler {

/// The job of a scheduler that this process is in: an allocation, a replica.
class CurrentJob {
 public:
  CurrentJob() = default;
  virtual ~CurrentJob() = default;
  CurrentJob(const CurrentJob&) = delete;
  CurrentJob& operator=(const CurrentJob&) = delete;

  [[nodiscard]] virtual std::uint32_t nodes() const = 0;
  /// Why the plan cannot run in it, in words for a person; empty when it can.
  [[nodiscard]] virtual std::string misfit(const plan::Plan& plan) const = 0;
  /// Where the attempts of a run take place; null: on this machine alone. This and all arguments outlive it.
  /// `share`: use GPUs that another run holds.
  [[nodiscard]] virtual std::unique_ptr<session::RunTarget> target(const plan::Plan& plan, bool share,
                                                                   const session::Caller& caller) const = 0;
  /// Where results have to be; empty: where the caller says.
  [[nodiscard]] virtual std::string runs_dir(const plan::Plan& /*plan*/) const { return ""; }
  /// True where another process of the job decides, and this one has to `follow` it.
  [[nodiscard]] virtual bool follows() const { return false; }
  /// The exit code of the run.
  virtual int follow(const plan::Plan& /*plan*/, const session::Caller& /*caller*/) const { return 0; }
  /// What goes on after the walltime; null: nothing does. All arguments outlive it.
  [[nodiscard]] virtual std::unique_ptr<session::JobChaining> chaining(
      const plan::Plan& /*plan*/, const std::string& /*runs_dir*/,
      const std::vector<std::string>& /*arguments*/, const session::Caller& /*caller*/) const {
    return nullptr;
  }
  /// Why whole runs cannot be compared in it, one after another; empty when they can.
  [[nodiscard]] virtual std::string no_comparison() const { return ""; }
};

/// A job in the words of its scheduler.
struct JobState {
  enum class Phase { pending, running, over };
  Phase phase = Phase::pending;
  std::string state;   ///< "PENDING", "COMPLETED", ...
  std::string reason;  ///< why it is pending, or how it ended; empty: not said
  std::string start;   ///< when it is expected to start; empty: not known
  std::string nodes;   ///< as the scheduler lists them; empty: none yet
  std::string log;     ///< path of its own log; empty: not known
};

enum class Cancel {
  waiting,   ///< it is taken out of the queue
  politely,  ///< it hears what Ctrl-C would say
  at_once,
};

/// What a job is made from.
struct JobRequest {
  std::string runs_dir = "runs";
  std::string program{};                 ///< nlaunch
  std::vector<std::string> arguments{};  ///< of `nlaunch run`, for the job
  std::string output{};                  ///< the file that the text is written to
  std::string run_dir = {};              ///< of the run, where it is there already
};

/// What a scheduler takes, and how it is handed over.
struct Rendered {
  std::string text;
  std::vector<std::string> submit;  ///< the words that submit JobRequest::output
  std::vector<std::string> notes;
  std::string log = {};  ///< path of the job's own log, where its state does not tell
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

  /// The job that we are in; null outside of one. Variables that contradict each other are a failure.
  [[nodiscard]] virtual Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const = 0;
  /// Writes what the job refers to, and nothing where there can be no job.
  [[nodiscard]] virtual Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                                const std::vector<std::string>& environment) const = 0;
  /// From where jobs are submitted: makes the run directory, submits the job that will use it, and follows it
  /// to its end where the scheduler lets us. The exit code of the run, or 0 where it is not followed to the
  /// end.
  [[nodiscard]] virtual int submit(const plan::Plan& plan, const SubmitOptions& options,
                                   const session::Caller& caller) const = 0;
  /// Nothing for a job that is not known any more.
  [[nodiscard]] virtual Result<std::optional<JobState>> state(
      const std::string& job, const std::vector<std::string>& environment) const = 0;
  [[nodiscard]] virtual Result<void> cancel(const std::string& job, Cancel how,
                                            const std::vector<std::string>& environment) const = 0;
};

/// A scheduler adds itself: const Registered<SchedulerEntry> slurm_scheduler{{"slurm", 0, the_slurm}};
struct SchedulerEntry {
  std::string_view name;  ///< of its traits
  int order = 0;
  const Scheduler& (*get)();
};

/// Null for a name that starts no jobs.
const Scheduler* find(std::string_view name);

/// The job of the plan's scheduler that we are in; null outside of one, and where nothing starts jobs.
Result<std::unique_ptr<CurrentJob>> current_job(std::string_view name,
                                                const std::vector<std::string>& environment);

/// The same, for a command that runs on what a person has allocated; null where the scheduler allocates
/// nothing.
Result<std::unique_ptr<CurrentJob>> current_allocation(std::string_view name,
                                                       const std::vector<std::string>& environment);

/// Where commands of this plan run, for who is not there: "site 'x' is reached through Slurm, and this is no
/// allocation".
std::string describe(const plan::Plan& plan);

}  // namespace nlaunch::scheduler
