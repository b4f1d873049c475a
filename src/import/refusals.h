#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "import/import.h"
#include "import/slurm.h"
#include "shell/allocation.h"
#include "shell/recorder.h"

namespace nlaunch::import {

/// A script of which roles were made.
struct Examined {
  const shell::Recording& recording;
  const shell::Allocation& allocation;
  const JobDirectives& directives;
  const std::vector<std::string>& lines;    ///< of the script
  const std::vector<std::string>& unknown;  ///< markers of the simulated job that nothing stands for
  const Imported& out;
};

/// Why no experiment can be the same job: an error for each reason, each said once. Empty if one can.
Diagnostics refusals_of(const Examined& script);

}  // namespace nlaunch::import
