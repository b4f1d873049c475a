#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

/// Which process on which node with which GPUs: a pure function of what the roles ask for.
namespace nlaunch::plan {

/// What one role asks for.
struct Demand {
  enum class Spread {
    count,     ///< so many units in the whole job, packed onto the first nodes with room
    per_node,  ///< so many on each node
  };
  std::string name;
  Spread spread = Spread::count;
  std::uint32_t number = 1;
  std::uint32_t gpus = 0;
  std::optional<std::size_t> except;  ///< demand whose nodes are left out (of `per_node`)
  std::vector<std::size_t> spawners;  ///< demands on whose nodes alone it may stand; empty: anywhere
  std::vector<std::size_t>
      shares_with{};  ///< demands on whose GPUs alone it stands, beside them; empty: its own
  /// The stages in which it has its GPUs: a role that has ended before the next stage begins leaves them to
  /// what comes later.
  std::uint32_t first_stage = 0;
  std::uint32_t last_stage = UINT32_MAX;
  /// Of `count`: each unit has so many processes on each of so many nodes, all of one pool.
  std::uint32_t unit_nodes = 1;
  std::uint32_t unit_per_node = 1;
  std::vector<std::size_t> pools{};  ///< on whose nodes alone it may stand; empty: anywhere
  bool on_one_node = false;          ///< of `count` with units of one process: all are on one node, or none
};

/// Nodes that are alike. The nodes of the first come first.
struct NodeRange {
  std::uint32_t nodes = 0;
  std::uint32_t gpus = 0;  ///< on each
};

struct Placed {
  std::uint32_t node = 0;
  std::vector<std::uint16_t> gpus;
};

/// A role that does not fit.
struct Misfit {
  std::size_t demand = 0;
  std::uint32_t fit = 0;   ///< so many of its units fit (on each node, for `per_node`)
  std::uint32_t idle = 0;  ///< GPUs that would stay idle with those, where it may stand
  /// The fewest nodes of the last pool where it may stand with which everything would fit; nothing: there is
  /// no such number.
  std::optional<std::uint32_t> on_nodes;
};

struct Placement {
  std::vector<std::vector<Placed>> by_demand;  ///< in order of index, so that ranks follow nodes
  std::vector<GpuRef> idle;
  std::vector<Misfit> misfits;
};

/// Two processes have the same GPU only in different stages, or where one shares the other's, or both share
/// those of a third. Roles `per_node` come first, then `count` roles in file order, but whom a role needs
/// comes before it. Each process is on the first node with enough free GPUs, and each unit on the first of
/// those: a process never spans two nodes.
Placement place(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools);
/// Where all nodes are alike.
Placement place(const std::vector<Demand>& demands, std::uint32_t nodes, std::uint32_t gpus_per_node);

/// Whether it may stand on nodes of this pool.
bool may_stand_in(const Demand& demand, std::size_t pool);

/// Whether there is a stage in which both have their GPUs.
bool are_at_once(const Demand& a, const Demand& b);

/// GPUs that one node needs for all demands in this pool: what `place` would use on a single node.
std::uint32_t gpus_on_one_node(const std::vector<Demand>& demands, std::size_t pool = 0);

}  // namespace nlaunch::plan
