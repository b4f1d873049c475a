#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"
#include "lint/script_sources.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Something of the made-up job or machine, which has another value when the script runs.
bool is_made_up(std::string_view value);

/// What a recorded script misses: variables that nothing sets, folders and scripts that are not here, the
/// lines behind its end. `names`: those of the variables that it sets.
void add_gaps(const shell::Recording& recording, const std::vector<std::string>& names,
              ScriptSources& sources, LintInput& input);

}  // namespace nlaunch::lint
