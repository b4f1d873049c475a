#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// The Slurm allocation that nlaunch was started in, as SLURM_ variables say, and the step that it makes of
/// it.
namespace nlaunch::launch {

/// "nid[001-003,7],login1" as names, in order. Nothing where it cannot be read.
std::optional<std::vector<std::string>> expand_nodelist(std::string_view text);

struct Allocation {
  std::string job_id;
  std::vector<std::string> nodes;
  std::uint32_t cpus = 0;             ///< on the node that has fewest; 0: not said
  std::optional<std::uint32_t> gpus;  ///< on each node, where Slurm says it
  /// A component of a heterogeneous job: a range of `nodes`.
  struct Component {
    std::size_t nodes = 0;
    std::uint32_t cpus = 0;
  };
  std::vector<Component> components{};  ///< in the order of their nodes; empty: the job is not heterogeneous
};

/// Nothing outside of an allocation. Variables that contradict each other are a failure.
Result<std::optional<Allocation>> find_allocation(const std::vector<std::string>& environment);

/// Why the plan cannot run there, with both numbers; empty when it can.
std::string misfit(const plan::Plan& plan, const Allocation& allocation);

/// The first nodes of each component that are not left out, as many as the plan has there; nothing where
/// there are too few.
std::optional<std::vector<std::string>> first_nodes(const plan::Plan& plan, const Allocation& allocation,
                                                    const std::set<std::string>& out);

/// The whole command of a step with one task on each of `nodes`: `command` is what the task executes, `input`
/// the option of srun that says what it reads. In a heterogeneous job `nodes` follow its components, and
/// their tasks are counted through (tried with Slurm 22.05; needs SLURM_HET_SIZE).
std::vector<std::string> srun_command(const plan::Plan& plan, const Allocation& allocation,
                                      const std::vector<std::string>& nodes,
                                      const std::vector<std::string>& command,
                                      const std::string& input = "--input=none");

/// The environment for srun: without what would be taken for its options, or would go before them.
std::vector<std::string> srun_environment(std::vector<std::string> environment);

}  // namespace nlaunch::launch
