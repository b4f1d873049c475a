#pragma once
#include <nlohmann/json_fwd.hpp>

#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// The experiment's workloads, each with the groups of the plan that it applies to.
Bench make_bench(const config::Bench& bench, const Plan& plan, Diagnostics& diagnostics);

nlohmann::ordered_json to_json(const Bench& bench, const Plan& plan);
/// The groups of `plan` must already be read. Throws if something does not match.
Bench bench_from_json(const nlohmann::json& from, const Plan& plan);

}  // namespace nlaunch::plan
