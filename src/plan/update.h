#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

/// What can change in a running run: the programs of its roles and their settings at start, but not their
/// placement or their connections.
namespace nlaunch::plan {

/// One difference, as in plan.json without values that look like secrets.
struct UpdatedSetting {
  std::string what;    ///< "command", "env NCCL_DEBUG", "ready"
  std::string before;  ///< empty: it did not exist
  std::string after;   ///< empty: it no longer exists
};
struct UpdatedRole {
  std::string role;
  std::vector<UpdatedSetting> settings;
};
struct Update {
  std::vector<UpdatedRole> roles;    ///< roles whose processes restart
  std::vector<std::string> refused;  ///< differences that cannot change during a run: "engine gpus"
};

/// Different locations of the same setting are not a difference.
Update update_of(const Plan& before, const Plan& after);

/// A plan from a file does not contain the values of variables that look like secrets: they stay unchanged.
void keep_masked(const Plan& before, Plan& after);

}  // namespace nlaunch::plan
