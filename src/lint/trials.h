#pragma once
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Which programs fail in turn: those that do the work, or only servers in the background.
enum class Tried { all, servers };

/// Records the script once more for each of these programs, with that program failing. Nothing is tried if
/// the script does not reach its end. `request`: that of the recording; `input`: made of it.
std::vector<Trial> try_failures(const shell::RecordRequest& request, const shell::Recording& recording,
                                const LintInput& input, Tried tried = Tried::all);

}  // namespace nlaunch::lint
