#include "cli/arms.h"

namespace nlaunch::cli {

void add_vary_option(Command app, std::vector<std::string>& vary) {
  app.option("--vary", vary,
             "Values to compare; NAME is a variable, ROLE:VARIABLE, with (overlays), ROLE.KEY, "
             "all.KEY or a key of --set; several --vary are crossed")
      .value_name("NAME=A,B,...")
      .one_word_each();
}

PlanArgs args_of(const PlanArgs& args, const bench::Arm& arm) {
  auto out = args;
  out.set.insert(out.set.end(), arm.set.begin(), arm.set.end());
  out.with.insert(out.with.end(), arm.with.begin(), arm.with.end());
  out.env.insert(out.env.end(), arm.env.begin(), arm.env.end());
  return out;
}

Result<std::vector<ArmPlan>> load_arms(const PlanArgs& args, const std::vector<std::string>& vary,
                                       const Context& context, launch::MachineSource& machine) {
  if (!args.plan_file.empty() && !vary.empty()) {
    return failure(
        "bench.vary",
        "--vary cannot be used with --plan, which runs a frozen plan unchanged: pass the experiment instead");
  }
  auto plan = load_plan(args, context, machine);
  if (!plan) return std::unexpected(plan.error());
  std::vector<std::string> roles;
  for (const auto& role : plan->roles) roles.push_back(role.name);
  auto arms = bench::make_arms(vary, roles);
  if (!arms) return std::unexpected(arms.error());
  std::vector<ArmPlan> plans;
  for (auto& arm : *arms) {
    if (arm.set.empty() && arm.with.empty() && arm.env.empty()) {
      plans.push_back({std::move(arm), *plan});
      continue;
    }
    auto own = load_plan(args_of(args, arm), context, machine);
    if (!own) return std::unexpected(own.error());
    plans.push_back({std::move(arm), std::move(*own)});
  }
  return plans;
}

std::string misfit(const std::vector<ArmPlan>& plans, const scheduler::CurrentJob* job,
                   std::string_view command) {
  for (const auto& [arm, plan] : plans) {
    const auto& traits = traits_of(plan.scheduler);
    if (traits.allocate.empty()) continue;
    if (job == nullptr) {
      const auto& components = plan.slurm.components;
      if (!components.empty())
        return fmt::format("{}: its pools are {} components of a job; submit one with `nlaunch run`",
                           scheduler::describe(plan), components.size());
      return fmt::format("{0}: {1} -N {3} nlaunch {4} ..., or {2} -N {3} --wrap 'nlaunch {4} ...'",
                         scheduler::describe(plan), traits.allocate, traits.submit, plan.node.count, command);
    }
    if (auto why = job->misfit(plan); !why.empty()) return why;
  }
  return "";
}

}  // namespace nlaunch::cli
