#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"
#include "lint/script_sources.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// True for something from the simulated job or machine, whose value differs when the script runs.
bool is_made_up(std::string_view value);

/// What is missing from a recorded script: variables that nothing sets, missing directories and scripts, the
/// lines after its end. `names`: the variables that it sets.
void add_gaps(const shell::Recording& recording, const std::vector<std::string>& names,
              ScriptSources& sources, LintInput& input);

}  // namespace nlaunch::lint
