#pragma once
#include <nlohmann/json_fwd.hpp>

#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The experiment's workloads, each with the plan's groups that it is for.
Bench make_bench(const config::Bench& bench, const Plan& plan, Diagnostics& diagnostics);

nlohmann::ordered_json to_json(const Bench& bench, const Plan& plan);
/// The groups of `plan` are read already. What does not fit is an exception.
Bench bench_from_json(const nlohmann::json& from, const Plan& plan);

}  // namespace nlaunch::plan
