#pragma once
#include <string>
#include <string_view>

namespace nlaunch::config {

/// True for a valid experiment name: letters, digits, . - and _, at most 100, starting with a letter or a
/// digit. It becomes the name of a directory of runs and of a job.
bool is_experiment_name(std::string_view name);

/// Which process the variables belong to: what nlaunch sets depends on it.
struct ProcessTraits {
  bool rendezvous = true;  ///< of a role with `rendezvous: torch`, or of any role: MASTER_ADDR, ...
  bool is_rank = true;     ///< each process is one rank, or can be one: RANK, LOCAL_RANK, ...
};

/// True for a variable that only nlaunch can set: LD_PRELOAD, RANK, CUDA_VISIBLE_DEVICES ...
bool is_reserved_variable(std::string_view name, ProcessTraits of = {});
/// Why, and what to use instead.
std::string reserved_reason(std::string_view name);
/// What to write instead.
std::string reserved_hint(std::string_view name);

}  // namespace nlaunch::config
