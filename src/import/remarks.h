#pragma once
#include <string>
#include <vector>

#include "import/import.h"
#include "import/slurm.h"
#include "lint/script_input.h"
#include "shell/allocation.h"
#include "shell/recorder.h"

namespace nlaunch::import {

/// A script on which there are remarks.
struct Remarked {
  const lint::LintInput& input;
  const std::vector<std::string>& lines;
  const shell::Recording& recording;
  const shell::Allocation& allocation;
  const JobDirectives& directives;
};

/// Adds what a reader of the experiment should know: what is not imported, what was made up, and what the
/// script does in another way than a run.
void add_remarks(const Remarked& script, Imported& out);
/// Those on how the script ends, and on what it does when a program fails.
void add_remarks_on_its_end(const Remarked& script, Imported& out);

}  // namespace nlaunch::import
