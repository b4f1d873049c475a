#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "import/import.h"

namespace nlaunch::import {

/// Calls `change` with every text that will be in one of the files, and its role; nullptr: of no role.
void each_text(Imported& all, const std::function<void(std::string& text, ImportedRole* role)>& change);

/// The command on a line, with its continuation lines; empty if there is no such line.
std::string whole_command(const std::vector<std::string>& lines, std::uint32_t line);

/// The head of the loop that a line is in: "while kill -0 $PID; do"; empty if it is in none.
std::string head_of_loop(const std::vector<std::string>& lines, std::uint32_t line);

/// Keeps the last of duplicate settings, masks secrets from the script's text, and sorts and limits remarks.
/// `lines`: of the script.
void finish(const std::vector<std::string>& lines, const std::vector<HandedOver>& secrets, Imported& all);

}  // namespace nlaunch::import
