#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace nlaunch::emit {

/// The variables with the frozen plan and the token for a replica.
constexpr std::string_view kPlanVariable = "NLAUNCH_PLAN";
constexpr std::string_view kTokenVariable = "NLAUNCH_TOKEN";

/// What a spec contains that is not in its plan.
struct BeakerJob {
  std::string packed_plan;             ///< the frozen plan, by `pack`
  std::vector<std::string> arguments;  ///< of `nlaunch run`, after the plan
};

/// The Beaker experiment spec (version v2) of a plan: one task, one replica per node. All texts are UTF-8.
/// The same arguments give the same bytes.
std::string beaker_spec(const plan::Plan& plan, const BeakerJob& job);

}  // namespace nlaunch::emit
