#pragma once
#include <string>
#include <vector>

#include "record/run_files.h"

/// Compares two runs.
namespace nlaunch::record {

struct Difference {
  std::string what;  ///< "learner NCCL_PROTO"
  std::string a;     ///< "(none)" if a run does not have it
  std::string b;
  std::string change;  ///< of a measured number: "+12 %"
};

/// Differences of one kind; equal values are only counted.
struct Section {
  std::string name;
  std::vector<Difference> differences;
  std::size_t equal = 0;
  /// Measured in the run, rather than an input of it: no two runs have the same times, so these do not count
  /// as a difference between the runs.
  bool measured = false;
};

struct Comparison {
  std::vector<Section> sections;  ///< those that explain most first
  [[nodiscard]] bool equal() const;
};

/// True for an environment variable that differs for every job or shell: SLURM_JOB_ID, SHLVL.
bool varies_by_job(const std::string& variable);

/// What is specific to each run (directories, ports, job ids) is not a difference. Pure, except that the
/// environments are read from the run directories.
Comparison compare(const RunFiles& a, const RunFiles& b);

/// {"a", "b": {"run", "folder"}, "equal", "sections": [{"name", "measured", "equal", "differences":
/// [{"what", "a", "b"[, "change"]}]}]}
Json to_json(const Comparison& comparison, const RunFiles& a, const RunFiles& b);

}  // namespace nlaunch::record
