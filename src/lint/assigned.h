#pragma once
#include <string>
#include <string_view>

#include "lint/lint_input.h"

/// What a script assigns to its variables, by its text.
namespace nlaunch::lint {

/// `"${OUT}/a.csv"` and `$OUT/a.csv` are the same.
std::string without_quoting(std::string_view path);

/// A text of a script, without quotes, with the variables in it replaced by what they are set to. Variables
/// that nothing sets stay. Empty if it may differ from run to run: with the date, the job's id, or a loop's
/// variable.
std::string lasting_text(const Script& script, std::string text);

/// True if the script changes to a directory by a variable: a relative path may be another one each time.
bool moves_by_variable(const Script& script);

}  // namespace nlaunch::lint
