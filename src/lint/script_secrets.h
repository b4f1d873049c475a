#pragma once
#include "lint/lint_input.h"
#include "lint/script_sources.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Adds to `input` the secrets that a recorded script has in its text, or puts on command lines. The settings
/// of its environments, which are reported as such, must be there.
void add_secrets(const shell::Recording& recording, ScriptSources& sources, LintInput& input);

}  // namespace nlaunch::lint
