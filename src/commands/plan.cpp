#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/load.h"
#include "launch/bind/venv.h"
#include "plan/json.h"
#include "report/plan_text.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

struct ShowArgs {
  PlanArgs plan;
  bool json = false;
};

int run_plan(const ShowArgs& args, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return context.console.error(plan.error());
  // It may exist by the time of the run, or on the nodes.
  const auto missing = launch::missing_venvs(*plan);
  for (auto venv : missing.items()) {
    venv.severity = Severity::warning;
    context.console.say(render(venv, context.console.paint.on() ? Color::always : Color::never));
  }
  if (args.json) {
    context.console.result(plan::to_text(*plan) + "\n");
  } else {
    constexpr std::uint32_t kMostNodes = 32;
    context.console.result(report::plan_text(*plan, context.console.result_paint,
                                             context.verbose ? plan->node.count : kMostNodes));
  }
  return 0;
}

void add_plan(Command program, Context& context) {
  auto args = std::make_shared<ShowArgs>();
  auto command = program.subcommand("plan", "Show what would run where, on which GPUs, and what stays idle")
                     .examples({"nlaunch plan grpo.yaml", "nlaunch plan grpo.yaml --site isambard --nodes 8",
                                "nlaunch plan grpo.yaml --json"});
  add_plan_options(command, args->plan, Experiment::required);
  command.flag("--json", args->json, "Print the whole plan as JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_plan(*args, context); }; });
}

const Registered<cli::CommandEntry> plan_command{{"plan", 15, add_plan, CommandGroup::check}};

}  // namespace

}  // namespace nlaunch::commands
