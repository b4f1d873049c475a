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

/// `args` as they are for one arm.
PlanArgs args_of(const PlanArgs& args, const bench::Arm& arm);

/// The plan of each arm that `vary` asks for. A frozen plan has one, and takes no `vary`.
Result<std::vector<ArmPlan>> load_arms(const PlanArgs& args, const std::vector<std::string>& vary,
                                       const Context& context, launch::MachineSource& machine);

/// Why these arms cannot be measured where we are, for `nlaunch COMMAND`; empty: they can.
/// `job`: the allocation that we are in; null: none.
std::string misfit(const std::vector<ArmPlan>& plans, const scheduler::CurrentJob* job,
                   std::string_view command);

}  // namespace nlaunch::cli
