#pragma once
#include "import/commands.h"
#include "import/import.h"

namespace nlaunch::import {

/// What the job's directives say of the machine.
struct JobSize {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 0;   ///< of each node; 0: not said
  std::uint32_t tasks = 0;  ///< of each node; 0: not said
};

/// The programs of the script as roles, with the order in which they start. Sets roles, start, libraries and,
/// where no directive says it, gpus.
void import_roles(const Doings& doings, const JobSize& size, Imported& out);

}  // namespace nlaunch::import
