#include "base/exit_code.h"
#include "base/text.h"
#include "cli/load.h"
#include "scheduler/scheduler.h"
#include "session/lint_gate.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct RenderArgs {
  PlanArgs plan;
  std::string runs_dir = "runs";
  std::string output;
  bool no_lint = false;
};

int run_render(const RenderArgs& args, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  const auto* scheduler = scheduler::find(plan->scheduler);
  if (scheduler == nullptr) {
    context.console.say(
        fmt::format("nlaunch render: site '{}' has no scheduler to submit a script to: run it here with "
                    "`nlaunch run`, or choose another --site (`nlaunch sites` lists them)\n",
                    plan->site));
    return exit_code::bad_input;
  }
  if (lint_stops(*plan, machine.install(), args.no_lint, "nlaunch render", context))
    return exit_code::bad_input;
  const auto rendered = scheduler->render(*plan, {args.runs_dir, machine.install().program, {}, args.output},
                                          context.environment);
  if (!rendered) return context.console.error(rendered.error());
  if (!context.console.quiet) {
    for (const auto& note : rendered->notes)
      context.console.say(fmt::format("{} {}\n", context.console.paint.yellow("note:"), note));
  }
  if (args.output.empty()) {
    context.console.document(rendered->text);
    return 0;
  }
  if (const auto wrote = sys::write_named_file(args.output, rendered->text); !wrote)
    return context.console.error(wrote.error());
  if (!context.console.quiet)
    context.console.say(fmt::format("submit it with: {}\n", text::shell_join(rendered->submit)));
  return 0;
}

void add_render(Command program, Context& context) {
  auto args = std::make_shared<RenderArgs>();
  auto command =
      program
          .subcommand(
              "render",
              "Print what is submitted to the scheduler: the batch script for Slurm, the spec for Beaker")
          .examples(
              {"nlaunch render grpo.yaml --site isambard", "nlaunch render grpo.yaml --output grpo.sbatch"});
  add_plan_options(command, args->plan, Experiment::required);
  command.option("--output", args->output, "Write to this file instead of standard output")
      .value_name("FILE");
  command.option("--runs-dir", args->runs_dir, "Directory for new runs [default: runs]");
  command.flag("--no-lint", args->no_lint, "Skip lint");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_render(*args, context); }; });
}

const Registered<cli::CommandEntry> render_command{{"render", 65, add_render, CommandGroup::convert}};

}  // namespace

}  // namespace nlaunch::commands
