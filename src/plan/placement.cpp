#include "plan/placement.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace nlaunch::plan {
namespace {

/// Whether two demands can use a GPU at the same time.
bool share(const std::vector<Demand>& demands, std::size_t a, std::size_t b) {
  const auto& partners_of_a = demands[a].shares_with;
  const auto& partners_of_b = demands[b].shares_with;
  return std::ranges::find(partners_of_a, b) != partners_of_a.end() ||
         std::ranges::find(partners_of_b, a) != partners_of_b.end() ||
         std::ranges::find_first_of(partners_of_a, partners_of_b) != partners_of_a.end();
}

/// Which demands use each GPU of each node.
class Board {
 public:
  Board(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools) : demands_(demands) {
    for (std::size_t pool = 0; pool < pools.size(); ++pool) {
      for (std::uint32_t node = 0; node < pools[pool].nodes; ++node) {
        used_.emplace_back(pools[pool].gpus);
        pool_of_.push_back(pool);
      }
    }
  }

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(used_.size()); }
  [[nodiscard]] std::size_t pool_of(std::uint32_t node) const { return pool_of_[node]; }
  [[nodiscard]] std::uint32_t free_on(std::uint32_t node, std::size_t demand) const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(used_[node], [&](const Uses& uses) { return is_free(uses, demand); }));
  }

  /// Of the GPUs that are free, as many as needed: those with the fewest other users at the same time, lowest
  /// number first.
  Placed take(std::uint32_t node, std::size_t demand) {
    std::vector<std::pair<std::ptrdiff_t, std::uint16_t>> free;
    for (std::uint16_t gpu = 0; gpu < used_[node].size(); ++gpu) {
      const auto& uses = used_[node][gpu];
      if (!is_free(uses, demand)) continue;
      const auto others = std::ranges::count_if(
          uses, [&](std::size_t use) { return are_at_once(demands_[use], demands_[demand]); });
      free.emplace_back(others, gpu);
    }
    std::ranges::sort(free);
    Placed placed{node, {}};
    for (std::uint32_t i = 0; i < demands_[demand].gpus; ++i) {
      placed.gpus.push_back(free.at(i).second);
      used_[node][free[i].second].push_back(demand);
    }
    std::ranges::sort(placed.gpus);
    return placed;
  }

  [[nodiscard]] std::vector<GpuRef> idle() const {
    std::vector<GpuRef> idle;
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      for (std::uint16_t gpu = 0; gpu < used_[node].size(); ++gpu)
        if (used_[node][gpu].empty()) idle.push_back({node, gpu});
    }
    return idle;
  }

 private:
  using Uses = std::vector<std::size_t>;  ///< demands

  [[nodiscard]] bool is_free(const Uses& uses, std::size_t demand) const {
    const auto& partners = demands_[demand].shares_with;
    if (!partners.empty() && std::ranges::find_first_of(uses, partners) == uses.end()) return false;
    return std::ranges::none_of(uses, [&](std::size_t use) {
      return are_at_once(demands_[use], demands_[demand]) && (use == demand || !share(demands_, use, demand));
    });
  }

  const std::vector<Demand>& demands_;
  std::vector<std::vector<Uses>> used_;
  std::vector<std::size_t> pool_of_;  ///< by node
};

std::vector<bool> nodes_of(const std::vector<Placed>& placed, std::uint32_t nodes) {
  std::vector<bool> marks(nodes, false);
  for (const auto& process : placed) marks[process.node] = true;
  return marks;
}

class Placer {
 public:
  Placer(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools)
      : demands_(demands), board_(demands, pools) {
    result_.by_demand.resize(demands.size());
  }

  Placement run() {
    for (const auto i : order()) {
      if (demands_[i].spread == Demand::Spread::per_node) {
        place_per_node(i);
      } else {
        place_count(i);
      }
    }
    result_.idle = board_.idle();
    return std::move(result_);
  }

 private:
  /// Roles that others avoid come first, then roles that spawn others, then the rest; within each, `per_node`
  /// before `count`. But a demand comes after those that it needs.
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<int> turn(demands_.size(), 2);
    for (const auto& demand : demands_) {
      for (const auto spawner : demand.spawners) turn[spawner] = std::min(turn[spawner], 1);
    }
    for (const auto& demand : demands_) {
      if (demand.except) turn[*demand.except] = 0;
    }
    std::vector<std::size_t> indices(demands_.size());
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    std::ranges::stable_sort(indices, {}, [&](std::size_t i) {
      return std::pair(turn[i], demands_[i].spread == Demand::Spread::count);
    });
    std::vector<std::size_t> order;
    std::vector<bool> seen(demands_.size(), false);
    for (const auto i : indices) add_with_needed(i, order, seen);
    return order;
  }

  void add_with_needed(std::size_t i, std::vector<std::size_t>& order, std::vector<bool>& seen) const {
    if (seen[i]) return;
    seen[i] = true;
    const auto& demand = demands_[i];
    if (demand.except) add_with_needed(*demand.except, order, seen);
    for (const auto needed : demand.spawners) add_with_needed(needed, order, seen);
    for (const auto needed : demand.shares_with) add_with_needed(needed, order, seen);
    order.push_back(i);
  }

  [[nodiscard]] std::vector<bool> allowed_nodes(std::size_t i) const {
    const auto& demand = demands_[i];
    std::vector<bool> allowed(board_.nodes(), demand.spawners.empty());
    const auto in_its_pools = [&](std::uint32_t node) { return may_stand_in(demand, board_.pool_of(node)); };
    for (const auto spawner : demand.spawners) {
      const auto marks = nodes_of(result_.by_demand[spawner], board_.nodes());
      for (std::uint32_t node = 0; node < board_.nodes(); ++node)
        allowed[node] = allowed[node] || marks[node];
    }
    if (demand.except) {
      const auto marks = nodes_of(result_.by_demand[*demand.except], board_.nodes());
      for (std::uint32_t node = 0; node < board_.nodes(); ++node)
        allowed[node] = allowed[node] && !marks[node];
    }
    for (std::uint32_t node = 0; node < board_.nodes(); ++node)
      allowed[node] = allowed[node] && in_its_pools(node);
    return allowed;
  }

  void place_per_node(std::size_t i) {
    const auto& demand = demands_[i];
    const auto allowed = allowed_nodes(i);
    std::uint32_t least = demand.number;
    for (std::uint32_t node = 0; node < board_.nodes(); ++node) {
      for (std::uint32_t k = 0; allowed[node] && k < demand.number; ++k) {
        if (board_.free_on(node, i) < demand.gpus) {
          least = std::min(least, k);
          break;
        }
        result_.by_demand[i].push_back(board_.take(node, i));
      }
    }
    if (least < demand.number) note_misfit(i, least);
  }

  void place_count(std::size_t i) {
    const auto& demand = demands_[i];
    const auto allowed = allowed_nodes(i);
    std::uint32_t first = 0;
    // A later unit is on the node of the first, which has room for all.
    const auto here = demand.on_one_node ? demand.number : 1;
    for (std::uint32_t k = 0; k < demand.number; ++k) {
      const auto nodes = nodes_for_unit(i, allowed, first, k == 0 ? here : 1);
      if (nodes.empty()) {
        note_misfit(i, k);
        return;
      }
      first = nodes.front();
      for (const auto node : nodes) {
        for (std::uint32_t n = 0; n < demand.unit_per_node; ++n)
          result_.by_demand[i].push_back(board_.take(node, i));
      }
    }
  }

  /// The first nodes of one pool with room for that many units, from `node` on; empty if there are none.
  [[nodiscard]] std::vector<std::uint32_t> nodes_for_unit(std::size_t i, const std::vector<bool>& allowed,
                                                          std::uint32_t node, std::uint32_t units) const {
    const auto& demand = demands_[i];
    std::vector<std::uint32_t> nodes;
    for (; node < board_.nodes() && nodes.size() < demand.unit_nodes; ++node) {
      if (!allowed[node] || board_.free_on(node, i) < units * demand.gpus * demand.unit_per_node) continue;
      if (!nodes.empty() && board_.pool_of(nodes.front()) != board_.pool_of(node)) nodes.clear();
      nodes.push_back(node);
    }
    if (nodes.size() < demand.unit_nodes) nodes.clear();
    return nodes;
  }

  /// A role that shares with a role that does not fit is not reported.
  void note_misfit(std::size_t i, std::uint32_t fit) {
    const auto& partners = demands_[i].shares_with;
    if (std::ranges::find_first_of(result_.misfits, partners, {}, &Misfit::demand) != result_.misfits.end())
      return;
    const auto idle = std::ranges::count_if(board_.idle(), [&](const GpuRef& gpu) {
      return may_stand_in(demands_[i], board_.pool_of(gpu.node));
    });
    result_.misfits.push_back({i, fit, static_cast<std::uint32_t>(idle), std::nullopt});
  }

  const std::vector<Demand>& demands_;
  Board board_;
  Placement result_;
};

bool fits(const std::vector<Demand>& demands, std::vector<NodeRange> pools, std::size_t pool,
          std::uint32_t nodes) {
  pools[pool].nodes = nodes;
  return Placer(demands, pools).run().misfits.empty();
}

/// The smallest number of nodes of `pool`, more than it has, with which everything fits.
std::optional<std::uint32_t> fewest_nodes(const std::vector<Demand>& demands,
                                          const std::vector<NodeRange>& pools, std::size_t pool) {
  constexpr std::uint32_t kMostNodes = 1U << 16U;
  std::uint32_t too_few = pools[pool].nodes;
  std::uint32_t enough = too_few;
  do {
    too_few = enough;
    enough *= 2;
    if (enough > kMostNodes) return std::nullopt;
  } while (!fits(demands, pools, pool, enough));
  while (enough - too_few > 1) {
    const auto middle = too_few + (enough - too_few) / 2;
    (fits(demands, pools, pool, middle) ? enough : too_few) = middle;
  }
  return enough;
}

/// The demands with `share`/`of` of their units. `halvings`: how often the GPUs of a process are halved, from
/// the next smaller power of two: the size of a tensor-parallel group divides the heads of a model.
std::vector<Demand> scaled(std::vector<Demand> demands, std::uint64_t share, std::uint64_t of,
                           unsigned halvings) {
  for (auto& demand : demands) {
    if (demand.gpus == 0) continue;
    demand.number = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, demand.number * share / of));
    if (halvings > 0 && demand.gpus > 1)
      demand.gpus = std::max(1U, std::bit_floor(demand.gpus - 1) >> (halvings - 1));
  }
  return demands;
}

/// The last pool that it can use.
std::size_t last_pool(const Demand& demand, std::size_t pools) {
  return demand.pools.empty() ? pools - 1 : std::ranges::max(demand.pools);
}

}  // namespace

bool are_at_once(const Demand& a, const Demand& b) {
  return a.first_stage <= b.last_stage && b.first_stage <= a.last_stage;
}

bool may_stand_in(const Demand& demand, std::size_t pool) {
  return demand.pools.empty() || std::ranges::find(demand.pools, pool) != demand.pools.end();
}

Placement place(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools) {
  auto placement = Placer(demands, pools).run();
  for (auto& misfit : placement.misfits) {
    const auto& demand = demands[misfit.demand];
    const auto pool = last_pool(demand, pools.size());
    const bool ever = demand.spread == Demand::Spread::count && pools[pool].nodes > 0 &&
                      demand.gpus * demand.unit_per_node <= pools[pool].gpus;
    if (ever) misfit.on_nodes = fewest_nodes(demands, pools, pool);
  }
  const auto none = std::ranges::find(placement.misfits, 0U, &Misfit::fit);
  if (none != placement.misfits.end()) none->split = split_that_fits(demands, pools);
  return placement;
}

std::vector<Demand> split_that_fits(const std::vector<Demand>& demands, const std::vector<NodeRange>& pools) {
  constexpr std::uint32_t kSteps = 64;      // of the number of units
  constexpr unsigned kMostHalvings = 6;     // of the GPUs of a process
  constexpr std::uint32_t kMostNodes = 64;  // on more, --nodes is the answer
  std::uint32_t nodes = 0;
  for (const auto& pool : pools) nodes += pool.nodes;
  if (nodes > kMostNodes) return {};
  std::uint32_t most = 1;
  for (const auto& demand : demands)
    if (demand.gpus > 0) most = std::max(most, demand.number);
  const auto steps = std::min(most, kSteps);
  for (unsigned halvings = 0; halvings <= kMostHalvings; ++halvings) {
    for (auto step = steps; step > 0; --step) {
      auto fewer = scaled(demands, step, steps, halvings);
      if (Placer(fewer, pools).run().misfits.empty()) return fewer;
    }
  }
  return {};
}

Placement place(const std::vector<Demand>& demands, std::uint32_t nodes, std::uint32_t gpus_per_node) {
  return place(demands, {{nodes, gpus_per_node}});
}

std::uint32_t gpus_on_one_node(const std::vector<Demand>& demands, std::size_t pool) {
  std::uint32_t most = 0;
  for (const auto& at : demands) {
    std::uint32_t together = 0;
    for (const auto& demand : demands) {
      const bool there = demand.first_stage <= at.first_stage && at.first_stage <= demand.last_stage;
      if (there && demand.shares_with.empty() && may_stand_in(demand, pool))
        together += demand.number * demand.unit_per_node * demand.gpus;
    }
    most = std::max(most, together);
  }
  return most;
}

}  // namespace nlaunch::plan
