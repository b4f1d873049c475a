#pragma once
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// What a login node can check about a job before it is submitted.
namespace nlaunch::launch {

/// What Slurm reports about a partition.
struct Partition {
  std::string name;
  bool is_default = false;
  std::string state;  ///< "UP", "DOWN", "DRAIN", "INACTIVE"
  std::uint32_t min_nodes = 0;
  std::uint32_t max_nodes = std::numeric_limits<std::uint32_t>::max();
  std::string max_time;  ///< as Slurm prints it
};

/// The lines of `scontrol -o show partition`.
std::vector<Partition> parse_partitions(std::string_view lines);

enum class PathKind { missing, folder, program, other };

/// What was found on the login node.
struct LoginFacts {
  std::vector<Partition> partitions;      ///< empty if Slurm does not report any
  std::map<std::string, PathKind> paths;  ///< the paths in the plan: see named_paths
};

struct Precheck {
  Diagnostics errors;
  std::vector<std::string> notes;
};

/// The absolute directories and programs of the roles whose complete path is known before the job runs.
std::vector<std::string> named_paths(const plan::Plan& plan);

/// Everything that would go wrong: partition limits under which the job would never start, and missing paths.
/// A login node cannot judge programs outside the roles' own directories: these are notes.
Precheck judge(const plan::Plan& plan, const LoginFacts& facts);

/// Checks only the file system.
Precheck check_paths(const plan::Plan& plan);

/// Checks Slurm and the file system.
Precheck precheck(const plan::Plan& plan, const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
