#pragma once
#include <string>
#include <vector>

#include "import/import.h"
#include "plan/plan.h"

namespace nlaunch::import {

/// A process that the plan would start otherwise than the script.
struct Difference {
  std::uint32_t line = 0;  ///< of the script; 0: of none
  std::string what;        ///< "learner.1: argument 3 is '4', and '8' in the script"
};

/// Holds every recorded process against the one that the plan would start in its place: command line,
/// folder, every variable, what has ended before it begins. `plan`: of the files that were made of
/// `imported`. The hosts, addresses and the id of the plan's run are those of the job that was recorded. What
/// nlaunch owns may differ in what it says and not in what it means: which GPUs of its node a process has, on
/// which port its rendezvous meets.
std::vector<Difference> differences(const Imported& imported, const shell::Recording& recording,
                                    const plan::Plan& plan);

}  // namespace nlaunch::import
