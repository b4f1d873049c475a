#pragma once
#include <string>

#include "base/secrets.h"
#include "report/table.h"
#include "shell/recorder.h"

namespace nlaunch::report {

/// What a script would start, for people: a row for each command, tasks that do the same in one, then what
/// was not known. Secrets of `masker`, and values of variables whose names look like secrets, are masked.
/// `script`: its file, as it was named.
std::string recording_text(const shell::Recording& recording, const std::string& script,
                           const shell::Allocation& allocation, Masker masker, const Paint& paint);

}  // namespace nlaunch::report
