#pragma once
#include <string>

#include "base/secrets.h"
#include "report/table.h"
#include "shell/recorder.h"

namespace nlaunch::report {

/// What a script would start, for people: a row for each command, tasks that do the same in one, then what
/// was not known. Secrets of `masker`, and values of variables whose names look like secrets, are masked.
/// `script`: its file, as it was named. `became`: what each command is in an experiment; empty: not asked.
std::string recording_text(const shell::Recording& recording, const std::string& script,
                           const shell::Allocation& allocation, const std::vector<std::string>& became,
                           Masker masker, const Paint& paint);

/// Why the recording is not of the whole script, in a sentence; empty: it is.
std::string why_not_whole(const shell::Recording& recording, const Masker& masker);

}  // namespace nlaunch::report
