#pragma once
#include <functional>

#include "import/import.h"

namespace nlaunch::import {

/// Calls `change` with every text that will stand in one of the files, and whose it is; nullptr: no role's.
void each_text(Imported& all, const std::function<void(std::string& text, ImportedRole* role)>& change);

/// Of what is set twice the last counts; secrets of the script's text are masked; remarks are sorted, and not
/// too many. `lines`: of the script.
void finish(const std::vector<std::string>& lines, Imported& all);

}  // namespace nlaunch::import
