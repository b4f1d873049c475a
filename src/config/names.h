#pragma once
#include <string>
#include <string_view>

namespace nlaunch::config {

/// True for what can name an experiment: letters, digits, . - and _, at most 100, a letter or a digit first.
/// It becomes the name of a folder of runs and of a job.
bool is_experiment_name(std::string_view name);

/// Whose variables: what nlaunch sets depends on it.
struct ProcessTraits {
  bool rendezvous = true;  ///< of a role with `rendezvous: torch`, or of any role: MASTER_ADDR, ...
  bool is_rank = true;     ///< each process is one rank, or may be: RANK, LOCAL_RANK, ...
};

/// True for a variable that nlaunch sets itself and nobody else may: LD_PRELOAD, RANK, CUDA_VISIBLE_DEVICES
/// ...
bool is_reserved_variable(std::string_view name, ProcessTraits of = {});
/// Why, and what to write instead.
std::string reserved_reason(std::string_view name);

}  // namespace nlaunch::config
