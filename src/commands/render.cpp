#include "base/exit_code.h"
#include "base/text.h"
#include "cli/load.h"
#include "launch/bad_nodes.h"
#include "launch/beaker_job.h"
#include "launch/job_script.h"
#include "session/lint_gate.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct Args {
  PlanArgs plan;
  std::string runs_dir = "runs";
  std::string output;
  bool no_lint = false;
};

/// Why a plan has no script.
std::optional<int> refuse(const plan::Plan& plan, const Context& context) {
  if (plan.scheduler != Scheduler::local) return std::nullopt;
  context.console.say(fmt::format(
      "nlaunch render: site '{}' has no scheduler that would take a script: `nlaunch run` runs it "
      "here, --site names another site (`nlaunch sites` lists them)\n",
      plan.site));
  return exit_code::bad_input;
}

/// What a scheduler takes, and how it is handed over.
struct Rendered {
  std::string text;
  std::vector<std::string> submit;  ///< the words that submit args.output
};

Result<Rendered> render_slurm(const plan::Plan& plan, const Args& args, const std::string& program,
                              const Context& context) {
  auto script = launch::make_job_script(plan, args.runs_dir, program, {});
  if (!script) return std::unexpected(script.error());
  const auto bad = launch::exclude_bad_nodes(plan.slurm);
  if (!context.console.quiet) {
    for (const auto& note : bad.notes)
      context.console.say(fmt::format("{} {}\n", context.console.paint.yellow("note:"), note));
  }
  Rendered rendered{std::move(script->text), {plan.slurm.submit.front()}};
  rendered.submit.insert(rendered.submit.end(), bad.options.begin(), bad.options.end());
  rendered.submit.push_back(args.output);
  return rendered;
}

Result<Rendered> render_beaker(const plan::Plan& plan, const Args& args, const Context& context) {
  auto spec = launch::make_beaker_spec(plan, {});
  if (!spec) return std::unexpected(spec.error());
  return Rendered{std::move(*spec), launch::beaker_command(plan, args.output, context.environment).words};
}

int run(const Args& args, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  if (const auto refused = refuse(*plan, context)) return *refused;
  if (lint_stops(*plan, machine.install(), args.no_lint, "nlaunch render", context))
    return exit_code::bad_input;
  const auto rendered = plan->scheduler == Scheduler::beaker
                            ? render_beaker(*plan, args, context)
                            : render_slurm(*plan, args, machine.install().program, context);
  if (!rendered) return context.console.error(rendered.error());
  if (args.output.empty()) {
    context.console.result(rendered->text);
    return 0;
  }
  if (const auto wrote = sys::write_named_file(args.output, rendered->text); !wrote)
    return context.console.error(wrote.error());
  if (!context.console.quiet)
    context.console.say(fmt::format("submit it with: {}\n", text::shell_join(rendered->submit)));
  return 0;
}

void add(Command program, Context& context) {
  auto args = std::make_shared<Args>();
  auto command = program.subcommand(
      "render", "What a scheduler takes: the batch script of a run for Slurm, the spec for Beaker");
  add_plan_options(command, args->plan, Experiment::required);
  command.option("--output", args->output, "File to write it to, in place of the terminal");
  command.option("--runs-dir", args->runs_dir, "Where run directories are made (runs)");
  command.flag("--no-lint", args->no_lint, "Write it whatever lint finds");
  command.when_called([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

const Registered<cli::CommandEntry> registered{{"render", 50, add}};

}  // namespace

}  // namespace nlaunch::commands
