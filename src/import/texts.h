#pragma once
#include <functional>

#include "import/import.h"

namespace nlaunch::import {

/// Calls `change` with every text that will be in one of the files, and its role; nullptr: of no role.
void each_text(Imported& all, const std::function<void(std::string& text, ImportedRole* role)>& change);

/// Keeps the last of duplicate settings, masks secrets from the script's text, and sorts and limits remarks.
/// `lines`: of the script.
void finish(const std::vector<std::string>& lines, Imported& all);

}  // namespace nlaunch::import
