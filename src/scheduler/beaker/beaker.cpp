#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "fleet/beaker_target.h"
#include "launch/job/beaker_job.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "report/plan_text.h"
#include "scheduler/scheduler.h"
#include "sys/files.h"

namespace nlaunch::scheduler {
namespace {

/// A Beaker job: one replica of a task with several, or its only process.
class BeakerJob : public CurrentJob {
 public:
  BeakerJob(std::optional<launch::Replica> replica, std::vector<std::string> environment)
      : replica_(std::move(replica)), environment_(std::move(environment)) {}

  [[nodiscard]] std::uint32_t nodes() const override { return replica_ ? replica_->count : 1; }
  [[nodiscard]] std::string misfit(const plan::Plan& plan) const override {
    return nodes() > 1 ? fleet::misfit(plan, *replica_, environment_) : "";
  }
  [[nodiscard]] std::unique_ptr<session::RunTarget> target(const plan::Plan& plan, bool share,
                                                           const session::Caller& caller) const override {
    if (nodes() == 1) return nullptr;
    return std::make_unique<fleet::BeakerTarget>(plan, *replica_, share, caller);
  }
  [[nodiscard]] std::string runs_dir(const plan::Plan& plan) const override { return plan.beaker.result; }
  [[nodiscard]] bool follows() const override { return nodes() > 1 && replica_->rank > 0; }
  int follow(const plan::Plan& plan, const session::Caller& caller) const override {
    return fleet::follow_leader(plan, *replica_, caller);
  }
  [[nodiscard]] std::string no_comparison() const override {
    if (nodes() == 1) return "";
    return "runs cannot be compared across several replicas of a Beaker task, which would have to reconnect "
           "for each run";
  }

 private:
  std::optional<launch::Replica> replica_;
  std::vector<std::string> environment_;
};

class Beaker : public Scheduler {
 public:
  [[nodiscard]] Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const override {
    auto replica = launch::find_replica(environment);
    if (!replica) return std::unexpected(replica.error());
    if (!*replica && !launch::in_beaker_job(environment)) return nullptr;
    return std::make_unique<BeakerJob>(std::move(*replica), environment);
  }

  [[nodiscard]] Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                        const std::vector<std::string>& environment) const override {
    auto spec = launch::make_beaker_spec(plan, request.arguments);
    if (!spec) return std::unexpected(spec.error());
    return Rendered{std::move(*spec), launch::beaker_command(plan, request.output, environment).words, {}};
  }

  /// Writes the spec to a run directory and submits it with Beaker's own program. Without the program it
  /// prints the command for a machine that has it; the exit code is then the one for wrong usage. Nothing is
  /// followed: Beaker has the logs.
  [[nodiscard]] int submit(const plan::Plan& plan, const SubmitOptions& options,
                           const session::Caller& caller) const override {
    const auto spec = launch::make_beaker_spec(plan, options.arguments);
    if (!spec) return caller.console.error(spec.error());
    const auto paths = launch::make_run_folder(options.runs_dir, plan.name);
    if (!paths) return caller.console.error(paths.error());
    const auto file = paths->folder / "beaker.yaml";
    auto saved = sys::write_file_atomically(file, *spec);
    if (saved) saved = sys::write_file_atomically(paths->folder / "plan.json", plan::to_text(plan, 2) + "\n");
    if (!saved) return caller.console.error(saved.error());
    const auto command = launch::beaker_command(plan, file, caller.environment);
    if (!command.program) {
      caller.console.say(fmt::format(
          "nlaunch run: nothing was submitted: {} is not on PATH here. The spec is written; to submit "
          "it, run this where the program is available:\n  {}\n",
          text::join(plan.beaker.submit, " or "), text::shell_join(command.words)));
      return exit_code::usage;
    }
    const auto said = launch::submit_to_beaker(command, caller.environment);
    if (!said) return caller.console.error(said.error());
    const nlohmann::json job{{"beaker", *said}, {"site", plan.site}};
    if (saved = sys::write_file_atomically(paths->folder / "job.json", json_text(job, 2) + "\n"); !saved)
      caller.console.say(nlaunch::render(saved.error()));
    if (!caller.console.quiet) {
      caller.console.say(fmt::format("{} on {}: {}\n", caller.console.paint.bold(plan.name), plan.site,
                                     report::placement_line(plan)));
      caller.console.say(fmt::format("{}\nthe spec: {}\n", text::printable(*said), file.string()));
    }
    if (const auto pointed = launch::point_latest(*paths); !pointed)
      caller.console.say(nlaunch::render(pointed.error()));
    return exit_code::ok;
  }

  /// Beaker's own pages and program show it.
  [[nodiscard]] Result<std::optional<JobState>> state(
      const std::string& /*job*/, const std::vector<std::string>& /*environment*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] Result<void> cancel(const std::string& job, Cancel /*how*/,
                                    const std::vector<std::string>& /*environment*/) const override {
    return failure("scheduler.cancel", "nlaunch cannot stop Beaker job {}: use `beaker job cancel {}`", job,
                   job);
  }
};

const Scheduler& the_beaker() {
  static const Beaker beaker;
  return beaker;
}

const Registered<SchedulerEntry> beaker_scheduler{{"beaker", 0, the_beaker}};

}  // namespace
}  // namespace nlaunch::scheduler
