#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::shell {

/// The simulated job in which a script is recorded. Its hosts, addresses, port and id are markers: if one
/// appears in a command, it represents that host, that address, a free port or the job's id.
struct Allocation {
  std::string job_id = "424242";
  std::string job_name = "job";
  std::string account = "rec-account";
  std::string partition = "rec-partition";
  std::uint32_t nodes = 1;           ///< of all components
  std::uint32_t tasks_per_node = 1;  ///< of the first component in a heterogeneous job
  std::uint32_t cpus_per_task = 0;   ///< 0: not requested
  std::uint32_t cpus_per_gpu = 0;    ///< 0: not requested
  std::uint32_t gpus_per_node = 0;   ///< in a heterogeneous job, the most of any node
  bool counts_tasks = true;          ///< false: Slurm does not set SLURM_NTASKS_PER_NODE
  bool other_machine = false;        ///< with another kind of GPU, which shows what depends on it in a script
  bool other_hosts = false;          ///< ssh to a host outside the job is followed too, as to its last node
  std::vector<std::string> variables{};       ///< as in AskedFor
  std::vector<std::uint32_t> array{};         ///< of a job array: the ids of its tasks
  std::optional<std::uint32_t> array_task{};  ///< which of them this is; nullopt: the first

  /// A component of a heterogeneous job: a range of its nodes.
  struct Component {
    std::uint32_t first = 0;
    std::uint32_t nodes = 1;
    std::uint32_t tasks_per_node = 1;
    std::uint32_t gpus_per_node = 0;
  };
  std::vector<Component> components{};  ///< in node order; empty: the job is not heterogeneous
  /// The component with this number, or nullopt. Component 0 of a job that is not heterogeneous is the whole
  /// job.
  [[nodiscard]] std::optional<Component> component(std::uint32_t number) const;
  /// The component of a node.
  [[nodiscard]] Component component_of(std::uint32_t node) const;

  /// "rec-node-0"
  [[nodiscard]] static std::string host(std::uint32_t node);
  /// "10.77.0.1"
  [[nodiscard]] static std::string address(std::uint32_t node);
  /// True if a text has the name or the address of a node in it.
  [[nodiscard]] static bool names_node(std::string_view text);
  /// True if it names a node, or the host on which it is used: localhost, 127.0.0.1, 0.0.0.0.
  [[nodiscard]] static bool names_host(std::string_view text);
  /// The ports that programs looking for a free port get: one after the other, and all tasks the last.
  static constexpr std::uint16_t kFirstPort = 42777;
  static constexpr std::uint16_t kPortOfTask = 42796;
  /// True if a text is one of these ports.
  [[nodiscard]] static bool is_port(std::string_view text);
  /// The name of the user who submits the job: another marker.
  static constexpr std::string_view kUser = "rec-user";
  static constexpr std::string_view kHome = "/rec/home";       ///< the user's home directory
  static constexpr std::string_view kLoginHost = "rec-login";  ///< from which the job is submitted
  static constexpr std::string_view kCluster = "rec-cluster";  ///< its name
  static constexpr std::string_view kInterface = "recif0";     ///< the network interface of every node
  /// The id of a job that the script submits.
  static constexpr std::uint32_t kSubmitted = 424243;
  /// "rec-node-[0-3]", the hosts of the job (or of one component) as Slurm writes them.
  [[nodiscard]] std::string host_list() const;
  [[nodiscard]] static std::string host_list(const Component& component);
};

/// The nodes of a host list, "rec-node-[0-3],rec-node-5", split like Slurm does: at commas, spaces and line
/// ends.
std::vector<std::uint32_t> nodes_in(std::string_view list);

/// The number at the start of a text; 0 if there is none.
std::uint32_t leading_number(std::string_view text);

/// The tasks of a job array: "0-15%4", "1,3,5-9:2"; ids above the 100,000th are left out. Empty for an empty
/// text.
std::vector<std::uint32_t> array_tasks(std::string_view value);

/// The size of the job that sbatch options request.
struct AskedFor {
  std::uint32_t nodes = 1;
  std::uint32_t tasks = 0;         ///< per node; 0: not set
  std::uint32_t gpus = 0;          ///< of each node
  std::uint32_t cpus_per_gpu = 0;  ///< 0: not set
  /// "SLURM_MEM_PER_NODE=122880": what Slurm sets only for jobs that ask for it (sbatch(1), output
  /// environment variables).
  std::vector<std::string> variables{};
  bool gpus_of_tasks = false;  ///< from --gpus-per-task
  bool uneven = false;         ///< nodes do not get the same number of tasks
};
/// `value` returns the value of an option by its long name ("nodes"), or an empty string.
AskedFor asked_for(const std::function<std::string(std::string_view option)>& value);

/// A task of a step: of srun or mpirun.
struct Task {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t node = 0;
  std::uint32_t node_of_step = 0;  ///< the node's index among the nodes of the step
  bool operator==(const Task&) const = default;
};

/// The variables that srun sets for all tasks of a step, as "NAME=VALUE" (srun(1), output environment
/// variables).
std::vector<std::string> variables_of_step(const Allocation& allocation, const std::vector<Task>& tasks,
                                           std::size_t step);
/// "4(x2),1": how many tasks are on each node, as Slurm writes it.
std::string tasks_per_node(const std::vector<Task>& tasks);

/// The node of a host or an address of the allocation.
std::optional<std::uint32_t> node_of(std::string_view host);

/// For each task of a step, the index of the recorded task that represents it (possibly itself): the first,
/// second and last task of each node are recorded and, with more than 16 nodes, only the first, second and
/// last node. `tasks` is sorted by node. With `all`, every task represents itself.
std::vector<std::size_t> recorded_for(const std::vector<Task>& tasks, bool all);

}  // namespace nlaunch::shell
