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

/// What a login node can know of a job before it is submitted.
namespace nlaunch::launch {

/// A time limit as Slurm reads it: "90", "10:30", "24:00:00", "1-12", "7-00:00:00", "UNLIMITED". Nothing
/// where it is none.
std::optional<std::chrono::seconds> parse_time_limit(std::string_view text);

/// What Slurm says of a partition.
struct Partition {
  std::string name;
  bool is_default = false;
  std::string state;  ///< "UP", "DOWN", "DRAIN", "INACTIVE"
  std::uint32_t min_nodes = 0;
  std::uint32_t max_nodes = std::numeric_limits<std::uint32_t>::max();
  std::string max_time;  ///< as Slurm writes it
};

/// The lines of `scontrol -o show partition`.
std::vector<Partition> parse_partitions(std::string_view lines);

enum class PathKind { missing, folder, program, other };

/// What was found on the login node.
struct LoginFacts {
  std::vector<Partition> partitions;      ///< empty where Slurm does not say
  std::map<std::string, PathKind> paths;  ///< what the plan names: see named_paths
};

struct Precheck {
  Diagnostics errors;
  std::vector<std::string> notes;
};

/// The folders and programs of the roles, absolute, whose whole path is known before the job runs.
std::vector<std::string> named_paths(const plan::Plan& plan);

/// What would go wrong, all of it: limits of the partition under which the job would wait for ever, and paths
/// that are not there. Of programs outside of the roles' own folders a login node cannot tell: these are
/// notes.
Precheck judge(const plan::Plan& plan, const LoginFacts& facts);

/// Looks at the file system alone, and judges.
Precheck check_paths(const plan::Plan& plan);

/// Asks Slurm and the file system, and judges.
Precheck precheck(const plan::Plan& plan, const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
