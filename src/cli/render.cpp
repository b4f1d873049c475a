#include "base/exit_code.h"
#include "base/text.h"
#include "cli/load.h"
#include "launch/job_script.h"
#include "launch/ledger.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

struct Args {
  PlanArgs plan;
  std::string runs_dir = "runs";
  std::string output;
};

/// Why a plan has no script.
std::optional<int> refuse(const plan::Plan& plan) {
  if (plan.scheduler == Scheduler::slurm) return std::nullopt;
  if (plan.scheduler == Scheduler::beaker) {
    say(fmt::format("nlaunch render: site '{}' runs Beaker, and this version writes no Beaker spec\n",
                    plan.site));
    return exit_code::usage;
  }
  say(fmt::format(
      "nlaunch render: site '{}' has no scheduler that would take a script: `nlaunch run` runs it "
      "here, --site names another site (`nlaunch sites` lists them)\n",
      plan.site));
  return exit_code::bad_input;
}

int run(const Args& args, const Context& context) {
  MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return complain(context, plan.error());
  if (const auto refused = refuse(*plan)) return *refused;
  const auto script = launch::make_job_script(*plan, args.runs_dir, machine.install().program, {});
  if (!script) return complain(context, script.error());
  const auto bad = launch::exclude_bad_nodes(plan->slurm);
  if (!context.quiet) {
    for (const auto& note : bad.notes) say(fmt::format("{} {}\n", context.err().yellow("note:"), note));
  }
  if (args.output.empty()) {
    print(script->text);
    return 0;
  }
  constexpr mode_t kMode = 0644;
  if (const auto wrote = sys::write_file_atomically(args.output, script->text, kMode); !wrote)
    return complain(context, wrote.error());
  if (!context.quiet) {
    std::vector<std::string> submit{plan->slurm.submit.front()};
    submit.insert(submit.end(), bad.options.begin(), bad.options.end());
    submit.push_back(args.output);
    say(fmt::format("submit it with: {}\n", text::shell_join(submit)));
  }
  return 0;
}

}  // namespace

void add_render(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("render", "The batch script of a run, for Slurm");
  add_plan_options(*command, args->plan, Experiment::required);
  command->add_option("--output", args->output, "File to write it to, in place of the terminal");
  command->add_option("--runs-dir", args->runs_dir, "Where run directories are made (runs)");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
