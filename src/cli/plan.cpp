#include "base/json.h"
#include "cli/load.h"
#include "launch/venv.h"
#include "plan/json.h"
#include "report/plan_text.h"

namespace nlaunch::cli {
namespace {

struct Args {
  PlanArgs plan;
  bool json = false;
};

int run(const Args& args, const Context& context) {
  MachineSource machine(launch::find_install());
  const auto plan = load_plan(args.plan, context, machine);
  if (!plan) return complain(context, plan.error());
  // It may be there by the time of the run, or on the nodes.
  const auto missing = launch::missing_venvs(*plan);
  for (auto venv : missing.items()) {
    venv.severity = Severity::warning;
    say(render(venv, context.err().on() ? Color::always : Color::never));
  }
  if (args.json) {
    print(json_text(plan::to_json(*plan)) + "\n");
  } else {
    constexpr std::uint32_t kMostNodes = 32;
    print(report::plan_text(*plan, context.out(), context.verbose ? plan->node.count : kMostNodes));
  }
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("plan", "What would run where, with which GPUs, and what is left idle");
  add_plan_options(*command, args->plan, Experiment::required);
  command->add_flag("--json", args->json, "The whole plan as JSON");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
