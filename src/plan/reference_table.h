#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/interpolation.h"
#include "config/role.h"
#include "plan/plan.h"
#include "plan/references.h"

/// One table of all names that `${...}` can contain: each row defines what a plan can fill in, and what only
/// a node can.
namespace nlaunch::plan {

/// The value of a name in a plan. `role`: that of the text, or nullptr.
Lookup look_up_in_plan(const PlanNames& names, std::string_view name, const config::Role* role);

/// The value of a name that the plan has kept. `process`: that of the text, or nullptr.
Lookup look_up_on_node(const NodeNames& names, std::string_view name, const Process* process);

/// Every name of the table, "self.rank", "library.NAME.path": for the documents and their tests.
std::vector<std::string> reference_names();

}  // namespace nlaunch::plan
