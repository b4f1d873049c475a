#pragma once
#include <string>
#include <vector>

#include "launch/install.h"
#include "lint/plan_input.h"
#include "plan/plan.h"

namespace nlaunch::launch {

/// What this machine says about a plan that is to be linted: wheels, libraries, the files that it was made
/// from, programs that are texts, nccl.conf. What is not here is left out. `modules`: load the plan's
/// modules, which takes a shell a second.
lint::PlanFacts lint_facts(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules);

/// The input of a plan, with what this machine knows of its paths. `releases` by owner ("NCCL") are taken in
/// place of those that are found.
lint::LintInput lint_input(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules,
                           const std::map<std::string, Version>& releases = {});

/// Asks this machine about the paths of a input.
void add_machine(lint::LintInput& input);

}  // namespace nlaunch::launch
