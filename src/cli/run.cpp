#include "base/exit_code.h"
#include "cli/job.h"
#include "cli/load.h"
#include "supervise/guardian.h"

namespace nlaunch::cli {
namespace {

struct Args {
  PlanArgs plan;
  JobOptions job;
  bool here = false;
  std::string level;
};

int run(const Args& args, const Context& context) {
  MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return complain(context, plan.error());
  if (plan->scheduler != Scheduler::local && !args.here) {
    say(fmt::format(
        "nlaunch run: site '{0}' is reached through its scheduler ({1}), to which this version does not "
        "submit; --here runs the plan on this machine\n",
        plan->site, name_of(plan->scheduler)));
    return exit_code::usage;
  }
  if (plan->node.count > 1) {
    say(fmt::format("nlaunch run: the plan has {} nodes, and this version runs on one; --nodes 1\n",
                    plan->node.count));
    return exit_code::bad_input;
  }
  const auto paths = launch::make_run_folder(args.job.runs_dir, plan->name);
  if (!paths) return complain(context, paths.error());
  auto options = args.job;
  if (!args.level.empty())
    options.level = args.level == "quick" ? PreflightLevel::quick : PreflightLevel::standard;
  const auto guardian = supervise::enter_guarded(report_lost_supervisor);
  return Job(*plan, std::move(options), context, machine).run(*paths, guardian);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("run", "Runs an experiment: plan, preflight, start, supervise, explain");
  add_plan_options(*command, args->plan, Experiment::required);
  command->add_option("--runs-dir", args->job.runs_dir, "Where run directories are made (runs)");
  command->add_option("--level", args->level, "Level of the preflight")
      ->check(CLI::IsMember({"quick", "standard"}));
  command->add_flag("--no-preflight", args->job.no_preflight,
                    "Start without the checks; the summary says so");
  command->add_flag("--strict", args->job.strict, "Stop when a check could not be carried out");
  command->add_flag("--share", args->job.share, "Use GPUs that another run holds");
  command->add_flag("--here", args->here, "Run on this machine, whatever the site's scheduler");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
