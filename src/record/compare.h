#pragma once
#include <string>
#include <vector>

#include "record/run_files.h"

/// Two runs side by side.
namespace nlaunch::record {

struct Difference {
  std::string what;  ///< "learner NCCL_PROTO"
  std::string a;     ///< "(none)" where a run has no such thing
  std::string b;
  std::string change;  ///< of a number that was measured: "+12 %"
};

/// Differences of one kind; what is the same is only counted.
struct Section {
  std::string name;
  std::vector<Difference> differences;
  std::size_t equal = 0;
  /// Of the run rather than what it was made from: no two runs have the same times, so these make no two
  /// runs different.
  bool measured = false;
};

struct Comparison {
  std::vector<Section> sections;  ///< what explains most first
  [[nodiscard]] bool equal() const;
};

/// What each run has of its own whatever is compared (folders, ports, ids of jobs) is no difference. Pure but
/// for the environments, which are read from the runs' folders.
Comparison compare(const RunFiles& a, const RunFiles& b);

/// {"a", "b": {"run", "folder"}, "equal", "sections": [{"name", "measured", "equal", "differences":
/// [{"what", "a", "b"[, "change"]}]}]}
Json to_json(const Comparison& comparison, const RunFiles& a, const RunFiles& b);

}  // namespace nlaunch::record
