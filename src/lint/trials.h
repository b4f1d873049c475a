#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

namespace nlaunch::lint {

/// Records the script once more for each program that does the work, with that program failing, and for a
/// server once more, that runs on without answering (Trial::hung). Nothing is tried if the script does not
/// reach its end. `request`: that of the recording; `input`: made of it. With `Tried::all`, what only
/// prepares (pip, git) fails, too.
enum class Tried { work, all };
std::vector<Trial> try_failures(const shell::RecordRequest& request, const shell::Recording& recording,
                                const LintInput& input, Tried tried = Tried::work);

/// Records the script once more for each program whose output it keeps in a variable, with that program
/// failing. What a later program starts with all the same is returned.
std::vector<FailedValue> try_values(const shell::RecordRequest& request, const shell::Recording& recording,
                                    const std::shared_ptr<const SourceFile>& file, const Script& script);

/// Records the script once more with its first `sbatch` failing. nullopt: it has none, or does not reach its
/// end.
std::optional<FailedSubmission> try_submission(const shell::RecordRequest& request,
                                               const shell::Recording& recording,
                                               const std::shared_ptr<const SourceFile>& file);

}  // namespace nlaunch::lint
