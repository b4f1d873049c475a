#pragma once
#include <string>
#include <vector>

#include "import/import.h"
#include "plan/plan.h"

namespace nlaunch::import {

/// A difference between a process of the plan and the script.
struct Difference {
  std::uint32_t line = 0;  ///< of the script; 0: of none
  std::string what;        ///< "learner.1: argument 3 is '4', but '8' in the script"
};

/// Compares every recorded process with the one that the plan would start instead: command line, directory,
/// every variable, what has exited before it starts. `plan`: from the files that were generated from
/// `imported`. The hosts, addresses and the id of the plan's run are those of the recorded job. What nlaunch
/// controls may differ in value but not in meaning: which GPUs of its node a process has, which port its
/// rendezvous uses.
std::vector<Difference> differences(const Imported& imported, const shell::Recording& recording,
                                    const plan::Plan& plan);

}  // namespace nlaunch::import
