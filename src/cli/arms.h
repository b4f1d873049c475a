#pragma once
#include "bench/arms.h"
#include "cli/load.h"
#include "scheduler/scheduler.h"

namespace nlaunch::cli {

struct ArmPlan {
  bench::Arm arm;
  plan::Plan plan;
};

void add_vary_option(Command app, std::vector<std::string>& vary);

/// `args` with the settings of one arm.
PlanArgs args_of(const PlanArgs& args, const bench::Arm& arm);

/// The plan of each arm that `vary` requests. A frozen plan has one arm and cannot be combined with `vary`.
Result<std::vector<ArmPlan>> load_arms(const PlanArgs& args, const std::vector<std::string>& vary,
                                       const Context& context, launch::MachineSource& machine);

/// Why these arms cannot be measured here, for `nlaunch COMMAND`; empty: they can. `job`: the current
/// allocation; null: none.
std::string misfit(const std::vector<ArmPlan>& plans, const scheduler::CurrentJob* job,
                   std::string_view command);

}  // namespace nlaunch::cli
