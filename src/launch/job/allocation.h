#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// The Slurm allocation in which nlaunch was started, according to SLURM_ variables, and the step that
/// nlaunch starts in it.
namespace nlaunch::launch {

/// "nid[001-003,7],login1" as names, in order. Empty if it cannot be parsed.
std::optional<std::vector<std::string>> expand_nodelist(std::string_view text);

struct Allocation {
  std::string job_id;
  std::vector<std::string> nodes;
  std::uint32_t cpus = 0;             ///< on the node that has the fewest; 0: not reported
  std::optional<std::uint32_t> gpus;  ///< on each node, if Slurm reports it
  /// A component of a heterogeneous job: a range of `nodes`.
  struct Component {
    std::size_t nodes = 0;
    std::uint32_t cpus = 0;
  };
  std::vector<Component> components{};  ///< in the order of their nodes; empty: the job is not heterogeneous
};

/// Empty outside an allocation. Contradictory variables are a failure.
Result<std::optional<Allocation>> find_allocation(const std::vector<std::string>& environment);

/// Why the plan cannot run there, with both numbers; empty if it can.
std::string misfit(const plan::Plan& plan, const Allocation& allocation);

/// The first nodes of each component that are not excluded, as many as the plan has there; empty if there are
/// too few.
std::optional<std::vector<std::string>> first_nodes(const plan::Plan& plan, const Allocation& allocation,
                                                    const std::set<std::string>& out);

/// The complete command of a step with one task on each of `nodes`: `command` is what the task executes,
/// `input` the srun option for its standard input. In a heterogeneous job `nodes` are in the order of its
/// components, and task numbers continue across them (tested with Slurm 22.05; needs SLURM_HET_SIZE).
std::vector<std::string> srun_command(const plan::Plan& plan, const Allocation& allocation,
                                      const std::vector<std::string>& nodes,
                                      const std::vector<std::string>& command,
                                      const std::string& input = "--input=none");

/// The environment for srun, without variables that srun takes as options or that would override them.
std::vector<std::string> srun_environment(std::vector<std::string> environment);

}  // namespace nlaunch::launch
