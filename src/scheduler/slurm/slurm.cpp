#include <re2/re2.h>

#include "base/text.h"
#include "launch/job/allocation.h"
#include "launch/job/bad_nodes.h"
#include "launch/job/job_script.h"
#include "launch/job/precheck.h"
#include "launch/job/slurm_job.h"
#include "scheduler/follow.h"
#include "scheduler/slurm/slurm_target.h"

namespace nlaunch::scheduler {
namespace {

class SlurmAllocation : public CurrentJob {
 public:
  explicit SlurmAllocation(launch::Allocation allocation) : allocation_(std::move(allocation)) {}

  [[nodiscard]] std::uint32_t nodes() const override {
    return static_cast<std::uint32_t>(allocation_.nodes.size());
  }
  [[nodiscard]] std::string misfit(const plan::Plan& plan) const override {
    return launch::misfit(plan, allocation_);
  }
  [[nodiscard]] std::unique_ptr<session::RunTarget> target(const plan::Plan& plan, bool share,
                                                           const session::Caller& caller) const override {
    return std::make_unique<SlurmTarget>(plan, allocation_, share, caller);
  }
  [[nodiscard]] std::unique_ptr<session::JobChaining> chaining(const plan::Plan& plan,
                                                               const std::string& runs_dir,
                                                               const std::vector<std::string>& arguments,
                                                               const session::Caller& caller) const override {
    return std::make_unique<session::JobChaining>(plan, allocation_.job_id, runs_dir, arguments, caller);
  }

 private:
  launch::Allocation allocation_;
};

/// In the terms that all schedulers share.
JobState state_of(launch::JobState job) {
  using Phase = JobState::Phase;
  const auto phase = job.pending() ? Phase::pending : job.over() ? Phase::over : Phase::running;
  return {phase,
          std::move(job.state),
          job.reason == "None" ? "" : std::move(job.reason),
          std::move(job.start),
          std::move(job.nodes),
          std::move(job.log)};
}

class Slurm : public FollowedScheduler {
 public:
  [[nodiscard]] Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const override {
    auto allocation = launch::find_allocation(environment);
    if (!allocation) return std::unexpected(allocation.error());
    if (!*allocation) return nullptr;
    return std::make_unique<SlurmAllocation>(std::move(**allocation));
  }

  [[nodiscard]] Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                        const std::vector<std::string>& /*environment*/) const override {
    auto script = launch::make_job_script(plan, request.runs_dir, request.program, request.arguments);
    if (!script) return std::unexpected(script.error());
    auto bad = launch::exclude_bad_nodes(plan.slurm);
    Rendered rendered{std::move(script->text), {plan.slurm.submit.front()}, std::move(bad.notes)};
    rendered.submit.insert(rendered.submit.end(), bad.options.begin(), bad.options.end());
    rendered.submit.push_back(request.output);
    return rendered;
  }

  [[nodiscard]] Result<std::optional<JobState>> state(
      const std::string& job, const std::vector<std::string>& environment) const override {
    auto asked = launch::job_state(job, environment);
    if (!asked) return std::unexpected(asked.error());
    if (!*asked) return std::nullopt;
    return state_of(std::move(**asked));
  }

  [[nodiscard]] Result<void> cancel(const std::string& job, Cancel how,
                                    const std::vector<std::string>& environment) const override {
    // The id comes from a file of the run directory, which may belong to another user: scancel also accepts
    // options and names.
    static const re2::RE2 kJob(R"(\d+(?:[_+]\d+)?)");
    if (!re2::RE2::FullMatch(job, kJob))
      return failure("scheduler.job", "'{}' is not a Slurm job id", text::printable(job));
    std::vector<std::string> command{"scancel"};
    if (how == Cancel::politely) command.insert(command.end(), {"--batch", "--signal=INT"});
    command.insert(command.end(), {"--", job});
    return launch::tell_slurm(std::move(command), environment);
  }

 protected:
  [[nodiscard]] Result<std::string> find_program(const plan::Plan& plan,
                                                 const std::vector<std::string>& environment) const override {
    return launch::find_submit_command(plan, environment);
  }
  [[nodiscard]] std::string file_name() const override { return "job.sbatch"; }
  [[nodiscard]] Result<std::vector<std::string>> check(
      const plan::Plan& plan, const std::vector<std::string>& environment) const override {
    auto checked = launch::precheck(plan, environment);
    if (checked.errors.has_errors()) return std::unexpected(std::move(checked.errors));
    return std::move(checked.notes);
  }
  [[nodiscard]] Result<std::string> hand_over(const plan::Plan& plan, const std::vector<std::string>& words,
                                              const std::vector<std::string>& environment) const override {
    return launch::submit_job(plan, words.front(), words.back(), environment,
                              {words.begin() + 1, words.end() - 1});
  }
};

const Scheduler& the_slurm() {
  static const Slurm slurm;
  return slurm;
}

const Registered<SchedulerEntry> slurm_scheduler{{"slurm", 0, the_slurm}};

}  // namespace
}  // namespace nlaunch::scheduler
