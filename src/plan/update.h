#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

/// What a run that goes on may be told to do otherwise: the programs of its roles and what they begin with,
/// not where they are and whom they talk to.
namespace nlaunch::plan {

/// One thing that differs, as it stands in plan.json without the values that look like secrets.
struct UpdatedSetting {
  std::string what;    ///< "command", "env NCCL_DEBUG", "ready"
  std::string before;  ///< empty: there was none
  std::string after;   ///< empty: there is none any more
};
struct UpdatedRole {
  std::string role;
  std::vector<UpdatedSetting> settings;
};
struct Update {
  std::vector<UpdatedRole> roles;    ///< whose processes start again
  std::vector<std::string> refused;  ///< what differs and cannot change while the run goes on: "engine gpus"
};

/// The places where something was asked for are no difference.
Update update_of(const Plan& before, const Plan& after);

/// A plan from a file has no values of variables that look like secrets: they stay as they are.
void keep_masked(const Plan& before, Plan& after);

}  // namespace nlaunch::plan
