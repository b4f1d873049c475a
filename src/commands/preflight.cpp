#include "session/check.h"

#include "base/exit_code.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/load.h"
#include "cli/preflight_output.h"
#include "commands/preflight_node.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "preflight/report/report_json.h"
#include "report/preflight_text.h"
#include "report/progress_line.h"
#include "scheduler/scheduler.h"
#include "session/interrupts.h"
#include "session/local_target.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct PreflightArgs {
  PlanArgs plan;
  std::string level;
  std::string from;  ///< a saved report
  OutputArgs output;
  bool ladder = false;
  std::string runs_dir = "runs";
  NodeCheck node;
};

/// Runs the checks, with results in a run directory.
int check(const PreflightArgs& args, const plan::Plan& plan, const Context& context, RunTarget& target) {
  auto output = Output::open(args.output);
  if (!output) return context.console.error(output.error());
  auto paths = launch::make_run_folder(args.runs_dir, plan.name);
  if (!paths) return context.console.error(paths.error());
  auto saved = launch::make_attempt_folder(*paths, 0);
  if (saved) {
    saved = sys::write_file_atomically(paths->folder / "plan.json", plan::to_text(plan, 2) + "\n");
  }
  if (!saved) return context.console.error(saved.error());
  auto level = plan.preflight.level;
  if (!args.level.empty()) level = level_of(args.level);
  const auto guardian = supervise::enter_guarded([&context](const supervise::SupervisorLost& lost) {
    context.console.say(fmt::format("nlaunch preflight: the supervisor {}\n", lost.status.str()));
  });
  const Interrupts interrupts;
  const auto begin = preflight::Timeline::Clock::now();
  const auto place = target.next(guardian);
  const auto refused = place->bind(*paths);
  if (auto* timeline = output->timeline()) timeline->add("nlaunch", "bind the plan to the machine", begin);
  if (const int signal = Interrupts::received(); signal != 0) {
    context.console.say(
        fmt::format("stopped by {} before anything was checked\n", supervise::name_of_stop(signal)));
    return supervise::exit_code_of_stop(signal);
  }
  if (refused) return refused->exit_code;
  for (const auto& note : place->bound().notes)
    context.console.say(fmt::format("note: {}\n", text::printable(note)));
  auto report = session::check(
      *place, {.level = level, .ladder = args.ladder, .timeline = output->timeline()}, context);
  output->judge(report);
  const auto json = json_text(preflight::to_json(report), 2) + "\n";
  if (const auto wrote = sys::write_file_atomically(paths->attempt / "preflight.json", json); !wrote)
    context.console.error(wrote.error());
  const int code = output->finish(report, context);
  target.record(preflight::suspects(report, plan.node.count));
  if (const int signal = Interrupts::received(); signal != 0) return supervise::exit_code_of_stop(signal);
  return code;
}

int check_here(const PreflightArgs& args, const plan::Plan& plan, const Context& context,
               launch::MachineSource& machine) {
  LocalTarget target(plan, true, context, machine);  // GPUs that another run holds can still be checked
  return check(args, plan, context, target);
}

int check_nodes(const PreflightArgs& args, const plan::Plan& plan, const scheduler::CurrentJob& job,
                const Context& context) {
  if (const auto misfit = job.misfit(plan); !misfit.empty()) {
    context.console.say(fmt::format("nlaunch preflight: {}\n", misfit));
    return exit_code::bad_input;
  }
  return check(args, plan, context, *job.target(plan, true, context));
}

/// Checks the groups of an experiment's plan where its job would run.
int check_experiment(const PreflightArgs& args, const Context& context, launch::MachineSource& machine) {
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  const auto allocate = traits_of(plan->scheduler).allocate;
  if (allocate.empty()) return check_here(args, *plan, context, machine);
  const auto job = scheduler::current_allocation(plan->scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  if (*job) return check_nodes(args, *plan, **job, context);
  context.console.say(
      fmt::format("nlaunch preflight: {}: to check nodes, use {} -N {} nlaunch preflight ...; nlaunch run "
                  "checks the nodes of its job before it starts anything there; nlaunch preflight --site {} "
                  "(without the experiment) checks this machine\n",
                  scheduler::describe(*plan), allocate, plan->node.count, plan->site));
  return exit_code::usage;
}

/// Shows a saved report again.
int show(const PreflightArgs& args, const Context& context) {
  if (!args.plan.experiment.empty() || !args.plan.plan_file.empty()) {
    context.console.say(
        "nlaunch preflight: --from shows a saved report and checks nothing: omit the experiment\n");
    return exit_code::usage;
  }
  const auto output = Output::open(args.output);
  if (!output) return context.console.error(output.error());
  auto report = read_report(args.from);
  if (!report) return context.console.error(report.error());
  output->judge(*report);
  return output->finish(*report, context);
}

int run_preflight(const PreflightArgs& args, const Context& context) {
  if (!args.from.empty()) return show(args, context);
  if (args.node.wanted) return check_node({args.node, args.plan, args.level, args.output}, context);
  launch::MachineSource machine(launch::find_install());
  if (!args.plan.experiment.empty() || !args.plan.plan_file.empty())
    return check_experiment(args, context, machine);
  const auto plan = load_allocation_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  const auto job = scheduler::current_allocation(plan->scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  return *job ? check_nodes(args, *plan, **job, context) : check_here(args, *plan, context, machine);
}

void add_preflight(Command program, Context& context) {
  auto args = std::make_shared<PreflightArgs>();
  auto command = program
                     .subcommand("preflight",
                                 "Run only the preflight checks; without an experiment, on all GPUs of the "
                                 "allocation or the machine")
                     .examples({"nlaunch preflight", "nlaunch preflight grpo.yaml --level deep",
                                "nlaunch preflight --node --level quick"});
  add_plan_options(command, args->plan, Experiment::optional);
  command.option("--level", args->level, "Preflight level: quick (no CUDA context), standard or deep")
      .one_of({"quick", "standard", "deep"});
  command.flag(
      "--ladder", args->ladder,
      "Check one GPU, one node, two nodes, then all; stop at the first that fails and show what it adds");
  command.option("--runs-dir", args->runs_dir, "Directory for the results [default: runs]");
  add_output_options(command.section("Output options"), args->output);
  add_node_options(command.section("Options for one machine"), args->node);
  command.section("Output options")
      .option("--trace", args->output.trace,
              "Write what takes how long, for ui.perfetto.dev: one row for nlaunch and one for each probe")
      .value_name("FILE")
      .excludes("--node");
  command
      .option("--from", args->from,
              "Show a saved preflight.json instead of checking; accepts the output options")
      .value_name("FILE")
      .excludes("--node")
      .excludes("--level")
      .excludes("--trace")
      .excludes("--ladder");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_preflight(*args, context); }; });
}

const Registered<cli::CommandEntry> preflight_command{
    {"preflight", 20, add_preflight, CommandGroup::check, exit_code::kPreflightMeanings}};

}  // namespace

}  // namespace nlaunch::commands
