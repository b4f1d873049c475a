#include <filesystem>

#include "base/exit_code.h"
#include "cli/load.h"
#include "commands/run_arms.h"
#include "launch/job/job_script.h"
#include "plan/metrics.h"
#include "plan/role_builder.h"
#include "scheduler/scheduler.h"
#include "session/check.h"
#include "session/lint_gate.h"
#include "session/local_target.h"
#include "session/run.h"
#include "sys/http_server.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct RunArgs {
  PlanArgs plan;
  RunOptions run;
  bool here = false;
  bool submit = false;
  bool detach = false;
  bool share = false;
  bool no_lint = false;
  std::string level;
  std::string run_dir;  ///< of a submitted job: it already exists
  std::string metrics_file;
  std::string metrics_port;
  RunArms arms;
};

/// The options of this command that also apply to the job and to the jobs that continue it.
std::vector<std::string> arguments_for_job(const RunArgs& args, const Context& context) {
  std::vector<std::string> out;
  if (args.run.no_preflight) out.emplace_back("--no-preflight");
  if (args.run.strict) out.emplace_back("--strict");
  if (args.run.fresh) out.emplace_back("--fresh");
  if (args.share) out.emplace_back("--share");
  if (!args.level.empty()) out.insert(out.end(), {"--level", args.level});
  if (context.console.quiet) out.emplace_back("--quiet");
  return out;
}

/// In place of what the experiment or a frozen plan says; the job of the run gets them with its plan.
void set_metrics(const RunArgs& args, plan::Plan& plan) {
  if (args.metrics_file.empty() && args.metrics_port.empty()) return;
  auto& to = plan.metrics ? *plan.metrics : plan.metrics.emplace();
  if (!args.metrics_file.empty()) to.file = plan::absolute(args.metrics_file, fs::current_path(), "");
  if (const auto listen = sys::parse_listen(args.metrics_port)) to.listen = sys::text_of(*listen);
}

/// Which process owns the scratch directory of a run: its supervisor, or the agents on its nodes.
enum class Scratch { here, of_agents };

int start(plan::Plan& plan, const RunArgs& args, const Context& context, RunTarget& target, Scratch scratch,
          JobChaining* continuation = nullptr) {
  Result<launch::RunPaths> paths = launch::RunPaths{fs::path(args.run_dir).filename(), args.run_dir, {}};
  if (args.run_dir.empty()) paths = launch::make_run_folder(args.run.runs_dir, plan.name);
  if (!paths) return context.console.error(paths.error());
  auto options = args.run;
  if (!args.level.empty()) options.level = level_of(args.level);
  // Elsewhere the agents remove theirs once their processes have exited.
  const auto own = scratch == Scratch::here ? launch::scratch_of(plan, 0, paths->id) : std::string();
  Exporter exporter(plan, paths->folder, context);
  const auto guardian = guard_run(plan, context, {.scratch = own});
  Run run(plan, std::move(options), context, target, exporter);
  if (continuation != nullptr) continuation->begin(*paths);
  const int code = run.execute(*paths, guardian);
  if (continuation != nullptr) continuation->end(run.outcome());
  return code;
}

int run_here(plan::Plan& plan, const RunArgs& args, const Context& context, launch::MachineSource& machine) {
  if (plan.node.count > 1) {
    context.console.say(fmt::format(
        "nlaunch run: the plan has {} nodes, but this is one machine; use --nodes 1\n", plan.node.count));
    return exit_code::bad_input;
  }
  LocalTarget target(plan, args.share, context, machine);
  return start(plan, args, context, target, Scratch::here);
}

/// In the current job, which fits the plan.
int run_in(const scheduler::CurrentJob& job, plan::Plan& plan, RunArgs args, const Context& context,
           launch::MachineSource& machine) {
  if (const auto folder = job.runs_dir(plan); !folder.empty()) args.run.runs_dir = folder;
  if (job.follows()) return job.follow(plan, context);
  const auto target = job.target(plan, args.share, context);
  if (!target) return run_here(plan, args, context, machine);
  if (const auto text = launch::plan_text(plan); !text) return context.console.error(text.error());
  const auto arguments = arguments_for_job(args, context);
  const auto continuation = job.chaining(plan, args.run.runs_dir, arguments, context);
  return start(plan, args, context, *target, Scratch::of_agents, continuation.get());
}

/// Runs here if the current job fits the plan, else submits a separate job.
int run_or_submit(plan::Plan& plan, const RunArgs& args, const Context& context,
                  launch::MachineSource& machine) {
  const auto* scheduler = scheduler::find(plan.scheduler);
  if (scheduler == nullptr && (args.submit || args.detach)) {
    context.console.say(
        fmt::format("nlaunch run: site '{}' has no scheduler to submit to, which {} requires\n", plan.site,
                    args.submit ? "--submit" : "--detach"));
    return exit_code::usage;
  }
  if (scheduler == nullptr) return run_here(plan, args, context, machine);
  const auto job = scheduler->detect(context.environment);
  if (!job) return context.console.error(job.error());
  if (*job && !args.submit) {
    const auto misfit = (*job)->misfit(plan);
    if (misfit.empty()) return run_in(**job, plan, args, context, machine);
    const bool here = args.here || !traits_of(plan.scheduler).submits_within;
    context.console.say(
        fmt::format("nlaunch run: {}{}\n", misfit, here ? "" : "; submitting a separate job"));
    if (here) return exit_code::bad_input;
  } else if (args.here) {
    return run_here(plan, args, context, machine);
  }
  return scheduler->submit(plan, {args.run.runs_dir, args.detach, arguments_for_job(args, context)}, context);
}

/// Rejects what does not apply to a run that is one of many, started here one after another.
int compare(const RunArgs& args, const Context& context) {
  const std::pair<bool, std::string_view> excluded[] = {{args.submit, "--submit"},
                                                        {args.detach, "--detach"},
                                                        {!args.plan.plan_file.empty(), "--plan"},
                                                        {!args.run_dir.empty(), "--run-dir"}};
  for (const auto& [given, option] : excluded) {
    if (!given) continue;
    context.console.say(
        fmt::format("nlaunch run: --vary and --repeat start their own runs, here and one after another: they "
                    "cannot be used with {}\n",
                    option));
    return exit_code::usage;
  }
  auto arms = args.arms;
  arms.here = args.here;
  arms.no_lint = args.no_lint;
  arms.runs_dir = args.run.runs_dir;
  arms.arguments = arguments_for_job(args, context);
  if (!args.metrics_file.empty())
    arms.arguments.insert(arms.arguments.end(), {"--metrics-file", args.metrics_file});
  if (!args.metrics_port.empty())
    arms.arguments.insert(arms.arguments.end(), {"--metrics-port", args.metrics_port});
  return run_arms(std::move(arms), args.plan, context);
}

int run_run(const RunArgs& args, const Context& context) {
  if (args.here && args.submit) {
    context.console.say("nlaunch run: --here and --submit cannot be used together\n");
    return exit_code::usage;
  }
  if (args.arms.asked()) return compare(args, context);
  if (args.arms.json || args.arms.seed) {
    context.console.say(
        "nlaunch run: --json and --seed require --vary or --repeat; for a single run, see summary.json\n");
    return exit_code::usage;
  }
  launch::MachineSource machine(launch::find_install());
  auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  set_metrics(args, *plan);
  // A frozen plan was linted when it was made.
  const bool frozen = !args.plan.plan_file.empty();
  if (!frozen && lint_stops(*plan, machine.install(), args.no_lint, "nlaunch run", context))
    return exit_code::bad_input;
  return run_or_submit(*plan, args, context, machine);
}

void add_run(Command program, Context& context) {
  auto args = std::make_shared<RunArgs>();
  auto command = program.subcommand("run", "Run an experiment: plan, preflight, start, supervise, explain")
                     .examples({"nlaunch run grpo.yaml", "nlaunch run grpo.yaml --site isambard --nodes 4",
                                "nlaunch run grpo.yaml --set roles.engine.count=4 --detach"});
  add_plan_options(command, args->plan, Experiment::required);
  command.option("--runs-dir", args->run.runs_dir, "Directory for new runs [default: runs]");
  command.option("--level", args->level, "Preflight level").one_of({"quick", "standard", "deep"});
  command.flag("--no-preflight", args->run.no_preflight, "Skip the preflight; the summary records it");
  command.flag("--fresh", args->run.fresh,
               "Run the preflight in full, even if it passed in this job within the last 10 minutes");
  command.flag("--no-lint", args->no_lint, "Skip lint");
  command.flag("--strict", args->run.strict, "Stop if a check cannot be carried out");
  command.flag("--share", args->share, "Allow GPUs that another run holds");
  command.flag("--here", args->here, "Run here: in the current allocation, or on this machine");
  command.flag("--submit", args->submit, "Submit a job, even inside an allocation");
  command.flag("--detach", args->detach, "Submit without following the run");
  command
      .option("--metrics-file", args->metrics_file,
              "Keep the metrics of the run in this file, for node_exporter's textfile collector")
      .checked([](const std::string& file) {
        const auto unknown = plan::unknown_in_metrics_file(file);
        return unknown.empty() ? "" : fmt::format("the name of the file cannot contain '{}'", unknown);
      });
  command
      .option("--metrics-port", args->metrics_port,
              "Serve the metrics of the run to Prometheus: PORT of 127.0.0.1, where 0 is any free one, or "
              "ADDRESS:PORT")
      .value_name("[ADDRESS:]PORT")
      .checked([](const std::string& port) {
        const auto parsed = sys::parse_listen(port);
        return parsed ? "" : parsed.error();
      });
  command.option("--run-dir", args->run_dir, "Run directory, created by the nlaunch that submitted the job")
      .hidden();
  add_arms_options(command.section("Options for a comparison"), args->arms);
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_run(*args, context); }; });
}

const Registered<cli::CommandEntry> run_command{{"run", 10, add_run, CommandGroup::run}};

}  // namespace

}  // namespace nlaunch::commands
