#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/work.h"

/// The state from which roles are made, in steps that roles.cpp calls in order.
namespace nlaunch::import {

/// A part that becomes a role.
struct Kept {
  std::size_t part = 0;
  WorkOf work;
  std::uint32_t stage = 0;
  std::uint32_t gpus = 0;                  ///< of each process
  std::vector<std::size_t> shares_with{};  ///< indices of those whose GPUs it uses at the same time
  bool exits = false;                      ///< the next one starts after it has exited
  bool main = false;                       ///< the job ends with it
  bool beside = false;                     ///< and it is not the first of those
  bool stays = false;                      ///< a server for which the script waits at its end
  bool waited = false;                     ///< its own task waited for something before it
  std::string name;
};

/// A separate role that prepares for those of a stage and comes before them, in this order.
enum class Before { waits, writes, nothing };
struct Preparing {
  std::uint32_t stage = 0;
  Before what = Before::waits;
  std::string name;
};

std::set<std::uint32_t> nodes_of(const Part& part);
std::uint32_t most_on_a_node(const Part& part);
bool same_on_each_node(const Part& part);
bool shares_a_rank(const Part& a, const Part& b);
/// The number of words that belong to its srun itself; 0 if it is not in a step.
std::size_t words_of_step(const Part& part);
/// Its commands, and those inside its container.
std::vector<std::size_t> all_commands_of(const Part& part);
/// `mkdir`, `rm` and the like.
bool changes_files(const Part& part);
/// True if the command blocks the script until something happens: sleep, curl, nc.
bool waits(const shell::RecordedCommand& command);

/// For a server on several nodes, only the first node answers.
enum class ServerNode { first, other, differs_by_task };
ServerNode node_of_server(const shell::Words& program);
/// The port of a server, its default if it names none, and its health check path.
std::string port_of_engine(const Part& part);
const char* health_path(const shell::Words& program);
/// True if it names no host and therefore listens only on 127.0.0.1.
bool listens_locally(const shell::Words& program);

bool is_ray(const Kept& kept);
/// True if both run at the same time at some point.
bool runs_beside(const Kept& a, const Kept& b);
/// The CUDA_VISIBLE_DEVICES that the script sets for it, split at commas; nullopt if not set.
std::optional<std::vector<std::string>> visible_of(const Part& part);

constexpr const char* kServerTimeout = "60m";  // no script says how long a model of any size takes

/// Nodes on which a part can be placed: all nodes of the job, or those of its components.
struct Where {
  std::vector<std::string> pools{};  ///< empty: all nodes
  std::uint32_t nodes = 0;
  std::uint32_t first = 0;
  std::uint32_t gpus_per_node = 0;  ///< the fewest
};

/// A recorded script while roles are made from it.
struct Job {
  const lint::Script& script;  ///< as lint reads it
  const shell::Recording& recording;
  const shell::Allocation& allocation;
  Imported& out;
  std::vector<Kept> kept{};
  std::vector<Preparing> preparing{};
  bool ray = false;  ///< it starts a Ray cluster

  [[nodiscard]] const Part& part_of(const Kept& one) const { return out.parts[one.part]; }
  /// The components that contain a part's tasks.
  [[nodiscard]] Where where(const Part& part) const;
  [[nodiscard]] std::optional<std::size_t> step_of(std::size_t command) const;
  [[nodiscard]] bool in_one_step(const Part& a, const Part& b) const;
  /// True if they are in one step but never in the same task: only a wait orders them.
  [[nodiscard]] bool side_by_side(const Part& a, const Part& b) const;
  /// True if they have a node in common.
  [[nodiscard]] bool meets(const Kept& a, const Kept& b) const;
  [[nodiscard]] bool any_trains() const;
  /// True if the job ends with it, it does not train, and engines use all GPUs of its node.
  [[nodiscard]] bool is_client(const Kept& one) const;
  /// A program whose GPUs are those of the Ray cluster that the job starts: its main program, or a server
  /// that needs more GPUs than a node has, or names Ray.
  [[nodiscard]] bool is_of_ray(const Kept& one) const;
  /// True if no program trains by its name and the job ends with this one.
  [[nodiscard]] bool is_in_place_of_training(const Kept& one) const;
  /// An unused role name: "wait", "wait-2".
  [[nodiscard]] std::string free_name(const std::string& wanted) const;
  void remark(std::uint32_t line, std::string text);
};

/// True if something in the script starts after waiting for this one to exit.
bool ends_before_others(const Job& job, std::size_t index);

/// Removes the tasks of a part that reach it only after a server before it has exited, with a note. Returns
/// false if none are left.
bool keep_tasks_before_servers(Job& job, std::size_t part);
/// Decides with which programs the job ends: the last one in front, or those that the script waits for after
/// it.
void choose_main(Job& job);
/// `wait`, `sleep infinity` or an endless loop behind the last program in front keeps the job, and with it
/// the servers that still run.
void keep_servers(Job& job);
/// Decides in which stage each starts. A program that starts after another one has exited or is ready is in a
/// later stage. Needs `choose_main`.
void order(Job& job);
/// Of two steps at once on some of the nodes, Slurm puts the one that names none onto nodes that no other
/// step holds, if there are any: which those are is not recorded.
void refuse_steps_without_nodes(Job& job);
/// Writes the stages of all roles, with what prepares for them, into `out.start`. The last step.
void stage_roles(Job& job);
/// Decides how many GPUs each has.
void divide_gpus(Job& job);
/// Decides which ones share GPUs at the same time. Needs names.
void let_share_gpus(Job& job);
/// Remarks on programs that name other GPUs of their node than those that they get.
void tell_of_other_gpus(Job& job);
/// A program that the script only gives time (`sleep 60`) is ready after that delay. Call after
/// `import_readiness`.
void import_delays(Job& job);
/// Remarks on servers that the script does not wait for, although a plan does.
void tell_of_added_waits(Job& job);
/// Remarks on `sleep` that no role's readiness stands for.
void tell_of_lost_delays(Job& job);
/// What the script waits for becomes `ready` of the role that answers, or a role that waits. The roles of
/// `kept` are the first of `out.roles`, in the same order.
void import_readiness(Job& job);

}  // namespace nlaunch::import
