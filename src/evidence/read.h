#pragma once
#include <filesystem>

#include "evidence/verdict.h"

namespace nlaunch::evidence {

/// Reads what collectors of one or more hosts have written below evidence/TIMESTAMP. Files that cannot be
/// read are left out, and listed in `missing`.
Result<Evidence> read_evidence(const std::filesystem::path& folder);

/// Reads, judges, and writes verdict.json into the directory.
struct Judged {
  Evidence evidence;
  Verdict verdict;
};
Result<Judged> judge_folder(const std::filesystem::path& folder);

}  // namespace nlaunch::evidence
