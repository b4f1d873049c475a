#include "config/pools.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::config {
namespace {

constexpr std::size_t kMostPools = 64;
constexpr std::uint32_t kMostCpus = 4096;

/// `elastic: {min: 2, max: 16}`, instead of `nodes`.
void read_elastic(const Value& value, Pool& pool) {
  Keys keys(value);
  pool.elastic.emplace().span = value.span();
  keys.number("min", pool.elastic->min, 0, kMostNodesOfARun);
  if (keys.require("max", "max: 16")) keys.number("max", pool.nodes, 1, kMostNodesOfARun);
  keys.finish();
  const auto& min = pool.elastic->min;
  if (min.value <= pool.nodes.value || !pool.nodes.span) return;
  auto& problem = value.problems().error(
      "config.elastic", min.span,
      fmt::format("'{}.min' is {}, and 'max' is {}", value.path(), min.value, pool.nodes.value));
  problem.notes.push_back({"'max' is here", pool.nodes.span});
  problem.hint =
      "min is the number of nodes that must join before the next stage starts, max the number to request";
}

/// The number of nodes: of the run's own job, or borrowed.
void read_nodes(Keys& keys, Pool& pool) {
  auto nodes = keys.get("nodes");
  const auto elastic = keys.get("elastic");
  if (!elastic) nodes = keys.require("nodes", "nodes: 4");
  if (elastic) read_elastic(*elastic, pool);
  if (elastic && nodes) {
    auto& problem = nodes->problems().error("config.exclusive", nodes->key_span(),
                                            "'nodes' and 'elastic' cannot both be set");
    problem.notes.push_back({"'elastic' is here", elastic->key_span()});
    problem.hint = "an elastic pool sets its number of nodes with min and max";
  } else if (nodes) {
    keys.number("nodes", pool.nodes, 1, kMostNodesOfARun);
  }
}

Pool read_pool(const Text& name, const Value& value, bool in_profile) {
  Pool pool;
  pool.name = name;
  check_simple_name(name, "a pool", value.problems());
  Keys keys(value);
  if (in_profile) {
    if (const auto nodes = keys.get("nodes"))
      value.problems()
          .error("config.pool", nodes->key_span(),
                 "a profile describes a pool's nodes, not how many there are")
          .hint = "set it in the experiment: pools: {" + name.value + ": {nodes: N}}";
    keys.pairs("directives", pool.directives);
  } else {
    read_nodes(keys, pool);
    keys.pairs("slurm", pool.directives);
  }
  keys.number("gpus", pool.gpus, 0, kMostGpus);
  keys.number("cpus", pool.cpus, 1, kMostCpus);
  keys.read("gpu", pool.gpu);
  keys.read("interface", pool.interface);
  keys.finish();
  return pool;
}

/// A role that shares GPUs runs where its partner does.
void check_meet(const Role& role, const Role& partner, Problems& problems) {
  const auto is_shared = [&](const Text& pool) {
    return std::ranges::find(partner.pools, pool.value, &Text::value) != partner.pools.end();
  };
  if (role.pools.empty() || partner.pools.empty() || std::ranges::any_of(role.pools, is_shared)) return;
  auto& problem = problems.error("config.share-gpus", role.pools.front().span,
                                 fmt::format("'{}' shares the GPUs of '{}', which is in another pool",
                                             role.name.value, partner.name.value));
  problem.notes.push_back({fmt::format("'{}' is here", partner.name.value), partner.pools.front().span});
  problem.hint = fmt::format("write pool: {}", partner.pools.front().value);
}

}  // namespace

std::vector<Pool> read_pools(const Value& value, bool in_profile) {
  std::vector<Pool> pools;
  if (value.node().entries.size() > kMostPools) {
    value.error("config.number", fmt::format("'{}' has {} pools; at most {} are allowed", value.path(),
                                             value.node().entries.size(), kMostPools));
    return pools;
  }
  for (const auto& [name, item] : value.entries()) pools.push_back(read_pool(name, item, in_profile));
  std::ranges::stable_partition(pools, [](const Pool& pool) { return !pool.elastic; });
  if (value.is(Node::Kind::map) && pools.empty()) {
    value.error("config.empty-value", fmt::format("'{}' has no pools", value.path())).hint =
        in_profile ? "write pools: {cpu: {gpus: 0, directives: {partition: cpu}}}"
                   : "write pools: {train: {nodes: 4}, rollout: {nodes: 8}}";
  }
  return pools;
}

const Pool* find_pool(const std::vector<Pool>& pools, std::string_view name) {
  const auto found = std::ranges::find_if(pools, [&](const Pool& pool) { return pool.name.value == name; });
  return found == pools.end() ? nullptr : &*found;
}

const Text* elastic_pool_of(const Role& role, const std::vector<Pool>& pools) {
  const auto found = std::ranges::find_if(role.pools, [&](const Text& name) {
    const auto* pool = find_pool(pools, name.value);
    return pool != nullptr && pool->elastic;
  });
  return found == role.pools.end() ? nullptr : &*found;
}

void check_pool_names(const std::vector<Role>& roles, const std::vector<Pool>& pools, Problems& problems) {
  std::vector<std::string> known;
  for (const auto& pool : pools) known.push_back(pool.name.value);
  for (const auto& role : roles) {
    for (const auto& name : role.share_gpus_with) {
      if (const auto* partner = find_role(roles, name.value)) check_meet(role, *partner, problems);
    }
    for (const auto& name : role.pools) {
      if (std::ranges::find(known, name.value) != known.end()) continue;
      if (known.empty()) {
        problems
            .error("config.unknown-pool", name.span,
                   fmt::format("unknown pool '{}': the experiment has no 'pools'", name.value))
            .hint = fmt::format("write pools: {{{}: {{nodes: N}}}}, or remove the key", name.value);
      } else {
        report_unknown(problems, "config.unknown-pool", name, fmt::format("unknown pool '{}'", name.value),
                       known);
      }
    }
  }
}

}  // namespace nlaunch::config
