#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace nlaunch::emit {

/// The variables by which a replica knows the frozen plan and the token.
constexpr std::string_view kPlanVariable = "NLAUNCH_PLAN";
constexpr std::string_view kTokenVariable = "NLAUNCH_TOKEN";

/// What a spec says that is not in its plan.
struct BeakerJob {
  std::string packed_plan;             ///< the frozen plan, by `pack`
  std::vector<std::string> arguments;  ///< of `nlaunch run`, behind the plan
};

/// The experiment spec (version v2) of a plan for Beaker: one task, a replica for each node. All texts are
/// UTF-8. The same arguments give the same bytes.
std::string beaker_spec(const plan::Plan& plan, const BeakerJob& job);

}  // namespace nlaunch::emit
