#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

/// Queries to hosts of the job that no program of the script answers: somebody else may, or not.
namespace nlaunch::lint {

/// The lines of such queries.
std::set<std::uint32_t> questions_for_nobody(const shell::Recording& recording);

/// Records the script once more for each of them, without an answer to that one.
std::vector<Unanswered> leave_unanswered(const shell::RecordRequest& request,
                                         const shell::Recording& recording);

}  // namespace nlaunch::lint
