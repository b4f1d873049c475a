#pragma once
#include <string>
#include <vector>

#include "launch/install.h"
#include "lint/plan_input.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// What this machine knows about a plan to lint: wheels, libraries, the plan's source files, scripts,
/// nccl.conf. Anything missing here is left out. `modules`: load the plan's modules, which takes a shell
/// about a second.
lint::PlanFacts lint_facts(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules);

/// The lint input of a plan, with what this machine knows of its paths. `releases` by owner ("NCCL") replace
/// those that are found.
lint::LintInput lint_input(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules,
                           const std::map<std::string, Version>& releases = {});

/// Lets this machine answer questions about paths of an input.
void add_machine(lint::LintInput& input);

}  // namespace nlaunch::launch
