#pragma once
#include "import/import.h"

namespace nlaunch::import {

/// Puts references in the place of what is made up in the job that was recorded: hosts, addresses, the free
/// port, the job's id, the user. Those for which there is none are told in `unknown`, each once.
void refer_to_the_job(const shell::Allocation& allocation, Imported& out, std::vector<std::string>& unknown);

}  // namespace nlaunch::import
