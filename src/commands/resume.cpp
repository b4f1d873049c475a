#include <memory>

#include "base/exit_code.h"
#include "base/scheduler_traits.h"
#include "cli/console.h"
#include "launch/run_dir/run_folder.h"
#include "plan/tolerance.h"
#include "scheduler/scheduler.h"
#include "session/run.h"
#include "session/run_view.h"
#include "sys/spawn.h"

// `nlaunch resume`: takes over a run whose nlaunch has exited and whose processes are still running.
namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct ResumeArgs {
  std::string run;
  std::string runs_dir = "runs";
  std::optional<unsigned> successions;  ///< set by a guardian that has become this process
};

/// Why the run cannot be taken over, or not here; empty: it can.
std::string misfit(const RunView& view, const plan::Plan& plan, const scheduler::CurrentJob* job,
                   const Context& context) {
  if (view.state != "running" && view.state != kDied)
    return fmt::format("run {} has ended: {}", view.id, view.state);
  if (!view.ending.empty()) return fmt::format("run {} was already ending: {}", view.id, view.ending);
  if (!plan::outlives_leader(plan))
    return fmt::format("run {} has no `leader_grace`: its processes ended with its nlaunch", view.id);
  const auto& traits = traits_of(plan.scheduler);
  const auto own = std::string(sys::env_value(context.environment, traits.job_variable));
  if (job == nullptr || own != view.job)
    return fmt::format("run {} is in job {} of {}, but this {}: run the command in that job", view.id,
                       view.job, traits.title, own.empty() ? "is not in a job" : "is job " + own);
  return job->misfit(plan);
}

int resume(const ResumeArgs& args, const Context& context) {
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return context.console.error(own.error());
  const auto refuse = [&](const std::string& why) {
    context.console.say(fmt::format("nlaunch resume: {}\n", why));
    return int{exit_code::bad_input};
  };
  const bool succeeds = args.successions.has_value();
  if (view->alive && !view->elsewhere && !succeeds)
    return refuse(fmt::format("run {} still has its nlaunch, with pid {} on this host", view->id, view->pid));
  auto plan = launch::plan_of_run(view->folder);
  if (!plan) return context.console.error(plan.error());
  const auto job = scheduler::current_job(plan->scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  if (const auto why = misfit(*view, *plan, job->get(), context); !why.empty()) return refuse(why);
  const auto target = (*job)->target(*plan, false, context);
  if (!target) return refuse(fmt::format("run {} is on one machine: it ended with its nlaunch", view->id));
  const auto chaining = (*job)->chaining(*plan, args.runs_dir, {}, context);
  Exporter exporter(*plan, view->folder, context);
  const auto guardian = guard_run(
      *plan, context,
      {.successions = args.successions.value_or(0), .inherits = succeeds, .spared = exporter.processes()});
  RunOptions options;
  options.runs_dir = args.runs_dir;
  options.succeeds = succeeds;
  Run run(*plan, std::move(options), context, *target, exporter);
  if (chaining) chaining->take_over({view->id, view->folder, {}});
  const int code = run.take_over({view->id, view->folder, {}}, guardian);
  if (chaining && !run.outcome().empty()) chaining->end(run.outcome());
  return code;
}

void add_resume(Command program, Context& context) {
  auto args = std::make_shared<ResumeArgs>();
  auto command =
      program.subcommand("resume", "Take over a run whose nlaunch was killed while its processes are alive")
          .examples({"nlaunch resume grpo", "nlaunch resume runs/grpo/latest"});
  command.option("RUN", args->run, kRunHelp).required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command
      .option("--successions", args->successions,
              "Set by a guardian: how many in a row were killed soon after they started")
      .hidden();
  command.when_called(
      [args, &context] { context.run = [args, &context] { return resume(*args, context); }; });
}

const Registered<cli::CommandEntry> resume_command{{"resume", 141, add_resume, CommandGroup::run}};

}  // namespace

}  // namespace nlaunch::commands
