#include "config/pools.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::config {
namespace {

constexpr std::size_t kMostPools = 64;
constexpr std::uint32_t kMostCpus = 4096;

Pool read_pool(const Text& name, const Value& value, bool in_profile) {
  Pool pool;
  pool.name = name;
  check_simple_name(name, "a pool", value.problems());
  Keys keys(value);
  if (in_profile) {
    if (const auto nodes = keys.get("nodes"))
      value.problems()
          .error("config.pool", nodes->key_span(),
                 "a profile says what a pool's nodes are like, not how many")
          .hint = "the experiment says it: pools: {" + name.value + ": {nodes: N}}";
    keys.pairs("directives", pool.directives);
  } else {
    if (keys.require("nodes", "nodes: 4")) keys.number("nodes", pool.nodes, 1, kMostNodesOfARun);
    keys.pairs("slurm", pool.directives);
  }
  keys.number("gpus", pool.gpus, 0, kMostGpus);
  keys.number("cpus", pool.cpus, 1, kMostCpus);
  keys.read("gpu", pool.gpu);
  keys.read("interface", pool.interface);
  keys.finish();
  return pool;
}

/// A role that shares GPUs stands where its partner does.
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
    value.error("config.number", fmt::format("'{}' has {} pools, at most {} are allowed", value.path(),
                                             value.node().entries.size(), kMostPools));
    return pools;
  }
  for (const auto& [name, item] : value.entries()) pools.push_back(read_pool(name, item, in_profile));
  if (value.is(Node::Kind::map) && pools.empty()) {
    value.error("config.empty-value", fmt::format("'{}' has no pool", value.path())).hint =
        in_profile ? "write pools: {cpu: {gpus: 0, directives: {partition: cpu}}}"
                   : "write pools: {train: {nodes: 4}, rollout: {nodes: 8}}";
  }
  return pools;
}

const Pool* find_pool(const std::vector<Pool>& pools, std::string_view name) {
  const auto found = std::ranges::find_if(pools, [&](const Pool& pool) { return pool.name.value == name; });
  return found == pools.end() ? nullptr : &*found;
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
                   fmt::format("there is no pool '{}': the experiment has no 'pools'", name.value))
            .hint = fmt::format("write pools: {{{}: {{nodes: N}}}}, or remove the key", name.value);
      } else {
        report_unknown(problems, "config.unknown-pool", name,
                       fmt::format("there is no pool '{}'", name.value), known);
      }
    }
  }
}

}  // namespace nlaunch::config
