#pragma once
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Records the script once more for each program that does the work, with that program failing. Nothing is
/// tried if the script does not reach its end. `request`: that of the recording; `input`: made of it.
std::vector<Trial> try_failures(const shell::RecordRequest& request, const shell::Recording& recording,
                                const LintInput& input);

}  // namespace nlaunch::lint
