#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

/// Which process runs on which node with which GPUs: a pure function of what the roles request.
namespace nlaunch::plan {

/// What one role requests.
struct Demand {
  enum class Spread {
    count,     ///< number of units in the whole job, packed onto the first nodes with room
    per_node,  ///< number of units on each node
  };
  std::string name;
  Spread spread = Spread::count;
  std::uint32_t number = 1;
  std::uint32_t gpus = 0;
  std::optional<std::size_t> except;  ///< for `per_node`: the demand whose nodes are left out
  std::vector<std::size_t> spawners;  ///< demands whose nodes it must use; empty: any node
  std::vector<std::size_t>
      shares_with{};  ///< demands whose GPUs it must use together with them; empty: its own GPUs
  /// The stages in which it holds its GPUs: a role that has exited before the next stage starts frees them
  /// for later roles.
  std::uint32_t first_stage = 0;
  std::uint32_t last_stage = UINT32_MAX;
  /// For `count`: each unit has this many processes on each of this many nodes, all of one pool.
  std::uint32_t unit_nodes = 1;
  std::uint32_t unit_per_node = 1;
  std::vector<std::size_t> pools{};  ///< pools whose nodes it must use; empty: any
  bool on_one_node = false;          ///< for `count` with units of one process: all on one node, or none
};

/// Nodes of the same kind. The nodes of the first pool come first.
struct NodeRange {
  std::uint32_t nodes = 0;
  std::uint32_t gpus = 0;  ///< per node
};

struct Placed {
  std::uint32_t node = 0;
  std::vector<std::uint16_t> gpus;
};

/// A role that does not fit.
struct Misfit {
  std::size_t demand = 0;
  std::uint32_t fit = 0;   ///< number of its units that fit (on each node, for `per_node`)
  std::uint32_t idle = 0;  ///< GPUs that would stay idle with those, on the nodes that it can use
  /// The smallest number of nodes of the last pool it can use with which everything would fit; nothing: no
  /// number is enough.
  std::optional<std::uint32_t> on_nodes;
  /// If none of its units fits: all demands as they would fit, see `split_that_fits`. Only of the first such
  /// role.
  std::vector<Demand> split{};
};

struct Placement {
  std::vector<std::vector<Placed>> by_demand;  ///< sorted by index, so that ranks follow nodes
  std::vector<GpuRef> idle;
  std::vector<Misfit> misfits;
};

/// Two processes use the same GPU only in different stages, or if one shares the other's GPUs, or both share
/// those of a third. Roles with `per_node` come first, then roles with `count` in file order, but a role
/// comes after those that it depends on. Each process goes to the first node with enough free GPUs, and uses
/// the first free ones: a process cannot span two nodes.
Placement place(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools);
/// For nodes of one kind.
Placement place(const std::vector<Demand>& demands, std::uint32_t nodes, std::uint32_t gpus_per_node);

/// The same demands with fewer units, in the same proportions as far as whole numbers permit, and if that is
/// not enough with fewer GPUs for each process: a power of two, which divides the heads of most models. As
/// many units as fit. Empty: none was found.
std::vector<Demand> split_that_fits(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools);

/// Whether it can use nodes of this pool.
bool may_stand_in(const Demand& demand, std::size_t pool);

/// Whether there is a stage in which both hold their GPUs.
bool are_at_once(const Demand& a, const Demand& b);

/// The number of GPUs that one node needs for all demands in this pool: what `place` would use on a single
/// node.
std::uint32_t gpus_on_one_node(const std::vector<Demand>& demands, std::size_t pool = 0);

}  // namespace nlaunch::plan
