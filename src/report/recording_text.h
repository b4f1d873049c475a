#pragma once
#include <string>

#include "base/secrets.h"
#include "report/table.h"
#include "shell/recorder.h"

namespace nlaunch::report {

/// What a script would start, for people: a row for each command, with equal tasks in one row, then what is
/// unknown. Secrets of `masker`, and values of variables whose names look like secrets, are masked. `script`:
/// its file, as the user named it. `became`: what each command is in the experiment; empty: not requested.
std::string recording_text(const shell::Recording& recording, const std::string& script,
                           const shell::Allocation& allocation, const std::vector<std::string>& became,
                           Masker masker, const Paint& paint);

/// Why the recording does not cover the whole script, in a sentence; empty: it does.
std::string why_not_whole(const shell::Recording& recording, const Masker& masker);

}  // namespace nlaunch::report
