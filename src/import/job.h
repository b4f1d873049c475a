#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/work.h"

/// What the making of roles works on, in the steps that roles.cpp calls one after another.
namespace nlaunch::import {

/// A part that becomes a role.
struct Kept {
  std::size_t part = 0;
  WorkOf work;
  std::uint32_t stage = 0;
  std::uint32_t gpus = 0;                  ///< of each process
  std::vector<std::size_t> shares_with{};  ///< indices of those on whose GPUs it is, at the same time
  bool exits = false;                      ///< the next begins when it has ended
  bool main = false;                       ///< the job ends with it
  bool beside = false;                     ///< and it is not the first of those
  bool waited = false;                     ///< its own task has waited for something before it
  std::string name;
};

/// A role of its own that is there for those of a stage, and comes before them, in this order.
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
/// Words of its srun that are that one's own; 0 where it is in none.
std::size_t words_of_step(const Part& part);
/// Its commands, and those within a container of it.
std::vector<std::size_t> all_commands_of(const Part& part);
/// The command holds the script up until something has come: sleep, curl, nc.
bool waits(const shell::RecordedCommand& command);

/// Of a server on several nodes the first alone answers.
enum class ServerNode { first, other, differs_by_task };
ServerNode node_of_server(const shell::Words& program);
/// Where a server answers that names no port, and what it is asked for.
const char* default_port(const shell::Words& program);
const char* health_path(const shell::Words& program);
/// It names no host, and then listens on 127.0.0.1 alone.
bool listens_locally(const shell::Words& program);

bool is_ray(const Kept& kept);
/// There is a time in which both run.
bool runs_beside(const Kept& a, const Kept& b);
/// The value of CUDA_VISIBLE_DEVICES that the script gives it, by its commas; nothing: none.
std::optional<std::vector<std::string>> visible_of(const Part& part);

constexpr const char* kServerTimeout = "60m";  // no script says how long a model of any size takes

/// Nodes on which a part could be: all of the job, or those of its components.
struct Where {
  std::vector<std::string> pools{};  ///< empty: all nodes
  std::uint32_t nodes = 0;
  std::uint32_t first = 0;
  std::uint32_t gpus_per_node = 0;  ///< the fewest
};

/// A recorded script on its way to roles.
struct Job {
  const shell::Recording& recording;
  const shell::Allocation& allocation;
  Imported& out;
  std::vector<Kept> kept{};
  std::vector<Preparing> preparing{};
  bool ray = false;  ///< it starts a Ray cluster

  [[nodiscard]] const Part& part_of(const Kept& one) const { return out.parts[one.part]; }
  /// The components that a part's tasks are in.
  [[nodiscard]] Where where(const Part& part) const;
  [[nodiscard]] std::optional<std::size_t> step_of(std::size_t command) const;
  [[nodiscard]] bool in_one_step(const Part& a, const Part& b) const;
  /// Of one step, and never in the same task: nothing but a wait puts them in order.
  [[nodiscard]] bool side_by_side(const Part& a, const Part& b) const;
  /// They have a node in common.
  [[nodiscard]] bool meets(const Kept& a, const Kept& b) const;
  [[nodiscard]] bool any_trains() const;
  /// The job ends with it; it trains nothing, and has engines beside it on all GPUs of its node.
  [[nodiscard]] bool is_client(const Kept& one) const;
  /// The job's main program under Ray, whose GPUs are Ray's.
  [[nodiscard]] bool is_of_ray(const Kept& one) const { return ray && one.main; }
  /// Where nothing trains by its name, it is what the job ends with.
  [[nodiscard]] bool is_in_place_of_training(const Kept& one) const;
  /// A name that no role has: "wait", "wait-2".
  [[nodiscard]] std::string free_name(const std::string& wanted) const;
  void remark(std::uint32_t line, std::string text);
};

/// Takes out those tasks of a part that come to it when a server before it has ended, with a note. False
/// where it has none left.
bool keep_tasks_before_servers(Job& job, std::size_t part);
/// How many GPUs each has.
void divide_gpus(Job& job);
/// Which have GPUs of others at the same time. Needs names.
void let_share_gpus(Job& job);
/// What the script only gives time (`sleep 60`) before it goes on is ready after that. Behind
/// `import_readiness`.
void import_delays(Job& job);
/// What the script waits for becomes `ready` of the role that answers, or a role that waits. The roles of
/// `kept` are the first of `out.roles`, in their order.
void import_readiness(Job& job);

}  // namespace nlaunch::import
