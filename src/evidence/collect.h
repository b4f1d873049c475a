#pragma once
#include <nlohmann/json_fwd.hpp>

#include "evidence/source.h"

namespace nlaunch::evidence {

/// Collects from all processes at the same time, and returns at the deadline at the latest: what has not
/// arrived by then is missing. Threads may still be running then (a read of /proc can hang with the process):
/// the caller must exit the program. Also writes the returned value to FOLDER/HOST/collected.json:
///   {"host", "folder", "seconds", "addresses": [...],
///    "got": [...], "missing": [{"what", "why", "install"}],             of the host
///    "processes": {"learner.0": {"got": [...], "missing": [...]}}}
Result<nlohmann::ordered_json> collect(const Spec& spec);

}  // namespace nlaunch::evidence
