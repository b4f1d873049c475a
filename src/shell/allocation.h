#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::shell {

/// The made-up job that a recorded script is in. Its hosts, addresses, port and id are markers: where one
/// turns up in a command, it stands for that host, that address, a free port or the job's id.
struct Allocation {
  std::string job_id = "424242";
  std::string job_name = "job";
  std::string account = "rec-account";
  std::string partition = "rec-partition";
  std::uint32_t nodes = 1;             ///< of all components
  std::uint32_t tasks_per_node = 1;    ///< of a heterogeneous job, in its first component
  std::uint32_t cpus_per_task = 0;     ///< 0: not asked for
  std::uint32_t gpus_per_node = 0;     ///< of a heterogeneous job, the most that a node has
  bool other_machine = false;          ///< with GPUs of another kind: what a script makes of that is seen
  std::vector<std::uint32_t> array{};  ///< of a job array: the ids of its tasks
  std::optional<std::uint32_t> array_task{};  ///< which of them this is; nothing: the first

  /// Of a heterogeneous job: a range of its nodes.
  struct Component {
    std::uint32_t first = 0;
    std::uint32_t nodes = 1;
    std::uint32_t tasks_per_node = 1;
    std::uint32_t gpus_per_node = 0;
  };
  std::vector<Component> components{};  ///< in the order of their nodes; empty: the job is of one
  /// That of this number; of a job that is not heterogeneous the first is all of it. Nothing: there is none.
  [[nodiscard]] std::optional<Component> component(std::uint32_t number) const;
  /// The one that a node is in.
  [[nodiscard]] Component component_of(std::uint32_t node) const;

  /// "rec-node-0"
  [[nodiscard]] static std::string host(std::uint32_t node);
  /// "10.77.0.1"
  [[nodiscard]] static std::string address(std::uint32_t node);
  /// What a program that looks for a free port finds.
  static constexpr std::uint16_t kPort = 42777;
  /// The id of a job that the script submits.
  static constexpr std::uint32_t kSubmitted = 424243;
  /// "rec-node-[0-3]", as Slurm writes the hosts of the job; of a component alone its own.
  [[nodiscard]] std::string host_list() const;
  [[nodiscard]] static std::string host_list(const Component& component);
};

/// The nodes of a list of hosts, "rec-node-[0-3],rec-node-5", parted as Slurm does: at commas, blanks and
/// line ends.
std::vector<std::uint32_t> nodes_in(std::string_view list);

/// The number that a text begins with; 0 where it begins with none.
std::uint32_t leading_number(std::string_view text);

/// How large a job is that options of sbatch ask for.
struct AskedFor {
  std::uint32_t nodes = 1;
  std::uint32_t tasks = 0;     ///< of each node; 0: not said
  std::uint32_t gpus = 0;      ///< of each node
  bool gpus_of_tasks = false;  ///< --gpus-per-task says them
};
/// `value`: of an option by its long name ("nodes"), or nothing.
AskedFor asked_for(const std::function<std::string(std::string_view option)>& value);

/// A task of a step: of srun or mpirun.
struct Task {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t node = 0;
  std::uint32_t node_of_step = 0;  ///< the same among those of its step
  bool operator==(const Task&) const = default;
};

/// What srun tells all tasks of a step of it, as "NAME=VALUE" (srun(1), output environment variables).
std::vector<std::string> variables_of_step(const Allocation& allocation, const std::vector<Task>& tasks,
                                           std::size_t step);
/// "4(x2),1": how many tasks are on each node, as Slurm writes it.
std::string tasks_per_node(const std::vector<Task>& tasks);

/// The node of a host or an address of the allocation.
std::optional<std::uint32_t> node_of(std::string_view host);

/// For each task of a step the index of the recorded one that stands for it, which may be itself: of each
/// node the first, second and last are recorded, and of more than 16 nodes the first, second and last node.
/// `tasks`: by node. `all`: each stands for itself.
std::vector<std::size_t> recorded_for(const std::vector<Task>& tasks, bool all);

}  // namespace nlaunch::shell
