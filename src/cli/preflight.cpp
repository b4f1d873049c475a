#include "preflight/preflight.h"

#include "base/exit_code.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "launch/bind.h"
#include "launch/run_folder.h"
#include "report/preflight_text.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

struct Args {
  PlanArgs plan;
  std::string level;
  bool json = false;
  bool strict = false;
  std::string runs_dir = "runs";
};

int code_of(preflight::Status verdict, bool strict) {
  switch (verdict) {
    case preflight::Status::fail:
      return exit_code::preflight_failed;
    case preflight::Status::unknown:
      return exit_code::preflight_unknown;
    case preflight::Status::warn:
      return strict ? exit_code::preflight_warned : exit_code::ok;
    case preflight::Status::pass:
    case preflight::Status::skip:
      return exit_code::ok;
  }
  return exit_code::internal;
}

int check(const Args& args, const plan::Plan& plan, const Context& context, MachineSource& source) {
  const auto machine = source.get_for(plan);
  if (!machine) return complain(context, machine.error());
  auto paths = launch::make_run_folder(args.runs_dir, plan.name);
  if (!paths) return complain(context, paths.error());
  if (const auto made = launch::make_attempt_folder(*paths, 0); !made) return complain(context, made.error());
  const auto bound = launch::bind({plan, 0, *paths, *machine, source.install(), context.environment});
  if (!bound) return complain(context, bound.error());
  const auto& node = bound->node;
  auto level = plan.preflight.level;
  if (!args.level.empty()) level = args.level == "quick" ? PreflightLevel::quick : PreflightLevel::standard;
  const Interrupts interrupts;
  preflight::Request request{
      plan, node, 0, paths->attempt.string(), source.install().probe, level, {}, {}, [] {
        return Interrupts::received() != 0;
      }};
  request.facts = machine->facts;
  const auto report = preflight::run(request);
  const auto json = preflight::to_json(report);
  if (const auto wrote = sys::write_file_atomically(paths->attempt / "preflight.json", json.dump(2) + "\n");
      !wrote) {
    say(render(wrote.error()));
  }
  if (args.json) {
    print(json.dump(2) + "\n");
  } else {
    if (!context.quiet) print(report::preflight_table(report, context.out()) + "\n");
    print(report::preflight_text(report, context.out()));
  }
  std::error_code ignored;
  std::filesystem::remove_all(node.scratch, ignored);
  if (const int signal = Interrupts::received(); signal != 0) return 128 + signal;
  return code_of(report.verdict, args.strict);
}

int run(const Args& args, const Context& context) {
  MachineSource machine(launch::find_install());
  if (!args.plan.experiment.empty() || !args.plan.plan_file.empty()) {
    const auto plan = load_plan(args.plan, context, machine);
    if (!plan) return complain(context, plan.error());
    if (plan->scheduler == Scheduler::slurm && sys::env_value(context.environment, "SLURM_JOB_ID").empty()) {
      say(fmt::format(
          "nlaunch preflight: site '{0}' is reached through Slurm, and this is no allocation: nlaunch run "
          "checks the nodes of its job before it starts anything there; nlaunch preflight --site {0} "
          "(without "
          "the experiment) checks this machine\n",
          plan->site));
      return exit_code::usage;
    }
    return check(args, *plan, context, machine);
  }
  const auto plan = load_machine_plan(args.plan, context, machine);
  return plan ? check(args, *plan, context, machine) : complain(context, plan.error());
}

}  // namespace

void add_preflight(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command =
      app.add_subcommand("preflight", "The checks alone; without an experiment, of all GPUs of the machine");
  add_plan_options(*command, args->plan, Experiment::optional);
  command->add_option("--level", args->level, "quick (no CUDA context) or standard")
      ->check(CLI::IsMember({"quick", "standard"}));
  command->add_option("--runs-dir", args->runs_dir, "Where the results are kept (runs)");
  command->add_flag("--json", args->json, "As JSON");
  command->add_flag("--strict", args->strict, "Exit code 1 for warnings");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
