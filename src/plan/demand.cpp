#include "plan/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/scheduler_traits.h"
#include "base/text.h"

namespace nlaunch::plan {

namespace {

/// The stage in which a role starts: a spawned role exists from the start of the first role that spawns it.
std::uint32_t stage_of(const config::Experiment& experiment, const config::Role& role) {
  for (std::uint32_t stage = 0; stage < experiment.start.size(); ++stage) {
    for (const auto& name : experiment.start[stage]) {
      const bool spawns = std::ranges::any_of(
          role.spawned_by, [&](const auto& spawner) { return spawner.value == name.value; });
      if (spawns || name.value == role.name.value) return stage;
    }
  }
  return 0;
}

/// "the GPUs of 'learner'"
std::string gpus_of(const std::vector<config::Text>& roles) {
  std::vector<std::string> names;
  for (const auto& role : roles) names.push_back(fmt::format("'{}'", role.value));
  return fmt::format("the GPUs of {}", text::join(names, " and "));
}

/// "2 nodes × 4 GPUs"
std::string nodes_and_gpus(const Node& node) {
  return fmt::format("{} × {}", text::count(node.count, "node"), text::count(node.gpus, "GPU"));
}

/// Where a role can run: "2 nodes × 4 GPUs", "the pool 'rollout' (2 nodes × 4 GPUs)"
std::string where_of(const Demand& demand, const Plan& plan) {
  if (plan.pools.empty()) return nodes_and_gpus(plan.node);
  std::vector<std::string> pools;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    if (may_stand_in(demand, i))
      pools.push_back(fmt::format("'{}' ({})", plan.pools[i].name, nodes_and_gpus(plan.pools[i].node)));
  }
  return fmt::format("{} {}", pools.size() == 1 ? "the pool" : "the pools", text::join(pools, " and "));
}

/// "2 processes of 4 GPUs", "2 replicas of 2 nodes × 4 processes of 1 GPU"
std::string units_of(const Demand& demand, const config::Role& role) {
  const auto gpus = text::count(demand.gpus, "GPU");
  if (demand.on_one_node)
    return fmt::format("{} of {} on one node", text::count(demand.number, "process"), gpus);
  if (!role.replica) return fmt::format("{} of {}", text::count(demand.number, "process"), gpus);
  return fmt::format("{} of {} × {} of {}", text::count(demand.number, "replica"),
                     text::count(demand.unit_nodes, "node"), text::count(demand.unit_per_node, "process"),
                     gpus);
}

/// "--nodes 4", "--nodes rollout=4"
std::string more_nodes(const Demand& demand, const Plan& plan, std::uint32_t nodes) {
  if (plan.pools.empty()) return fmt::format("--nodes {}", nodes);
  std::size_t pool = plan.pools.size() - 1;
  while (!may_stand_in(demand, pool)) --pool;
  return fmt::format("--nodes {}={}", plan.pools[pool].name, nodes);
}

/// (on each node, for `per_node`)
std::uint64_t gpus_of_all(const Demand& demand) {
  return std::uint64_t{demand.number} * demand.unit_nodes * demand.unit_per_node * demand.gpus;
}

/// The largest number of GPUs of a node that the role can use.
std::uint32_t most_gpus(const Demand& demand, const Plan& plan) {
  if (plan.pools.empty()) return plan.node.gpus;
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    if (may_stand_in(demand, i)) most = std::max(most, plan.pools[i].node.gpus);
  }
  return most;
}

/// "train", "[train, rollout]": the pools whose nodes have room for that many processes; empty for none.
std::string pools_with_room(const Demand& demand, const Plan& plan) {
  std::vector<std::string> names;
  for (const auto& pool : plan.pools) {
    if (std::uint64_t{demand.number} * demand.gpus <= pool.node.gpus) names.push_back(pool.name);
  }
  return names.size() > 1 ? fmt::format("[{}]", text::join(names, ", ")) : text::join(names, "");
}

/// ", with `--tensor-parallel-size 2` in its command", if the command has the old number.
std::string with_tensor_parallel(const config::Role& role, std::uint32_t before, std::uint32_t after) {
  constexpr std::array<std::string_view, 5> kOptions{"--tensor-parallel-size", "--tensor_parallel_size",
                                                     "-tp", "--tp", "--tp-size"};
  for (std::size_t i = 0; i + 1 < role.command.size(); ++i) {
    const auto& option = role.command[i].value;
    if (std::ranges::find(kOptions, option) == kOptions.end()) continue;
    if (role.command[i + 1].value == std::to_string(before))
      return fmt::format(", with `{} {}` in its command", option, after);
  }
  return "";
}

/// "--set roles.learner.count=2 --set roles.engine.gpus=2 (2 GPUs for 'learner', 2 for 'engine')"
std::string way_of_split(const std::vector<Demand>& wanted, const std::vector<Demand>& split,
                         const config::Experiment& experiment) {
  std::vector<std::string> settings;
  std::vector<std::string> shares;
  std::string more;
  for (std::size_t i = 0; i < split.size(); ++i) {
    const bool per_node = split[i].spread == Demand::Spread::per_node;
    const auto set = [&](std::string_view key, std::uint32_t before, std::uint32_t after) {
      if (before != after) settings.push_back(fmt::format("--set roles.{}.{}={}", split[i].name, key, after));
    };
    set(per_node ? "per_node" : "count", wanted[i].number, split[i].number);
    set("gpus", wanted[i].gpus, split[i].gpus);
    if (split[i].gpus == 0) continue;
    if (wanted[i].gpus != split[i].gpus)
      more += with_tensor_parallel(experiment.roles[i], wanted[i].gpus, split[i].gpus);
    if (!split[i].shares_with.empty()) continue;
    const auto gpus = gpus_of_all(split[i]);
    shares.push_back(fmt::format("{} for '{}'{}",
                                 shares.empty() ? text::count(gpus, "GPU") : std::to_string(gpus),
                                 split[i].name, per_node ? " on each node" : ""));
  }
  return fmt::format("{}{} ({})", text::join(settings, " "), more, text::join(shares, ", "));
}

/// Whether there is a pool that both can use.
bool may_meet(const Demand& a, const Demand& b) {
  return a.pools.empty() || b.pools.empty() || std::ranges::find_first_of(a.pools, b.pools) != a.pools.end();
}

}  // namespace

std::vector<Demand> demands_of(const config::Experiment& experiment) {
  const auto pool_of = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(experiment.pools, [&](const auto& p) { return p.name.value == name; });
    return static_cast<std::size_t>(found - experiment.pools.begin());
  };
  const auto index_of = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(experiment.roles, [&](const auto& r) { return r.name.value == name; });
    return static_cast<std::size_t>(found - experiment.roles.begin());
  };
  // A role uses borrowed nodes only if it names their pool.
  std::vector<std::size_t> own_pools;
  for (std::size_t i = 0; i < experiment.pools.size(); ++i)
    if (!experiment.pools[i].elastic) own_pools.push_back(i);
  std::vector<Demand> demands;
  for (const auto& role : experiment.roles) {
    Demand demand{role.name.value, Demand::Spread::count, 1, role.gpus.value, std::nullopt, {}};
    if (role.per_node)
      demand = {role.name.value, Demand::Spread::per_node, role.per_node->value, role.gpus.value, {}, {}};
    if (role.count) demand.number = role.count->value;
    if (role.per && role.per->value == config::Role::Per::node) demand.spread = Demand::Spread::per_node;
    if (role.except) demand.except = index_of(role.except->value);
    for (const auto& spawner : role.spawned_by) demand.spawners.push_back(index_of(spawner.value));
    for (const auto& partner : role.share_gpus_with) demand.shares_with.push_back(index_of(partner.value));
    for (const auto& pool : role.pools) demand.pools.push_back(pool_of(pool.value));
    const bool anywhere = role.pools.empty() && role.spawned_by.empty() && role.share_gpus_with.empty();
    if (anywhere && own_pools.size() < experiment.pools.size()) demand.pools = own_pools;
    if (role.replica) {
      demand.unit_nodes = role.replica->nodes.value;
      demand.unit_per_node = role.replica->per_node.value;
    }
    demand.on_one_node = demand.spread == Demand::Spread::count && !role.replica && role.keep_together &&
                         role.keep_together->within.value == Closeness::node;
    demand.first_stage = stage_of(experiment, role);
    if (role.ready && role.ready->exited) demand.last_stage = demand.first_stage;
    demands.push_back(std::move(demand));
  }
  return demands;
}

void report_misfit(const Misfit& misfit, const std::vector<Demand>& wanted,
                   const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics) {
  const auto& demand = wanted[misfit.demand];
  const auto& role = experiment.roles[misfit.demand];
  const bool per_node = demand.spread == Demand::Spread::per_node;
  const auto span = role.count ? role.count->span : role.per_node ? role.per_node->span : role.gpus.span;
  const bool shares = !demand.shares_with.empty();
  const auto where = shares ? gpus_of(role.share_gpus_with) : where_of(demand, plan);
  const auto idle = shares ? std::string()
                           : fmt::format(", and {} {} idle", text::count(misfit.idle, "GPU"),
                                         misfit.idle == 1 ? "stays" : "stay");
  auto& error = diagnostics.error(
      "plan.does-not-fit", span,
      fmt::format("role '{}': {}{} {} not fit on {}: {} {}{}{}", demand.name, units_of(demand, role),
                  per_node ? " on each node" : "", demand.number == 1 ? "does" : "do", where,
                  misfit.fit == 0 ? "none" : std::to_string(misfit.fit), misfit.fit == 1 ? "fits" : "fit",
                  per_node ? " on each" : "", idle));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool concerned = shares ? std::ranges::find(demand.shares_with, i) != demand.shares_with.end()
                                  : may_meet(demand, wanted[i]);
    if (i == misfit.demand || wanted[i].gpus == 0 || !concerned) continue;
    error.notes.push_back(
        {fmt::format("role '{}' uses {}{}", wanted[i].name, text::count(gpus_of_all(wanted[i]), "GPU"),
                     wanted[i].spread == Demand::Spread::per_node ? " on each node" : ""),
         experiment.roles[i].name.span});
  }
  if (demand.gpus > 1) error.notes.push_back({"a process cannot span two nodes", {}});
  std::vector<std::string> ways;
  const auto key = per_node ? "per_node" : "count";
  if (misfit.fit > 0) ways.push_back(fmt::format("--set roles.{}.{}={}", demand.name, key, misfit.fit));
  if (misfit.on_nodes && !traits_of(plan.scheduler).this_machine)
    ways.push_back(more_nodes(demand, plan, *misfit.on_nodes));
  if (const auto own = most_gpus(demand, plan); !role.replica && role.kind == RoleKind::engine && own > 0 &&
                                                demand.gpus > own && demand.gpus % own == 0)
    ways.push_back(fmt::format("write `replica: {{nodes: {}}}` and `gpus: {}` for an engine on several nodes",
                               demand.gpus / own, own));
  if (!misfit.split.empty()) ways.push_back(way_of_split(wanted, misfit.split, experiment));
  if (const auto pools = pools_with_room(demand, plan); per_node && demand.pools.empty() && !pools.empty())
    ways.push_back(fmt::format("write `pool: {}`, whose nodes have enough GPUs", pools));
  error.hint = text::join(ways, ", or ");
}

void check_gpu_memory(const std::vector<Demand>& wanted, const Placement& placement,
                      const config::Experiment& experiment, Diagnostics& diagnostics) {
  // Sums of decimal shares are not exact.
  constexpr double kAll = 1 + 1e-9;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<std::size_t>> on;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!experiment.roles[i].gpu_memory) continue;
    for (const auto& placed : placement.by_demand[i])
      for (const auto gpu : placed.gpus) on[{placed.node, gpu}].push_back(i);
  }
  std::set<std::vector<std::size_t>> said;
  for (const auto& [place, all] : on) {
    for (const auto first : all) {
      std::vector<std::size_t> together;
      std::vector<std::string> shares;
      double sum = 0;
      for (const auto i : all) {
        const bool there = wanted[i].first_stage <= wanted[first].first_stage &&
                           wanted[first].first_stage <= wanted[i].last_stage;
        if (!there) continue;
        together.push_back(i);
        sum += experiment.roles[i].gpu_memory->value;
        shares.push_back(fmt::format("'{}' {:g}", wanted[i].name, experiment.roles[i].gpu_memory->value));
      }
      if (sum <= kAll || !said.insert(together).second) continue;
      auto& error =
          diagnostics.error("plan.gpu-memory", experiment.roles[together.back()].gpu_memory->span,
                            fmt::format("the roles on GPU {} of node {} request {:g} times its memory: {}",
                                        place.second, place.first, sum, text::join(shares, ", ")));
      for (const auto i : together) {
        if (i != together.back())
          error.notes.push_back({fmt::format("the share of '{}' is here", wanted[i].name),
                                 experiment.roles[i].gpu_memory->span});
      }
      error.hint = "the shares of roles that use one GPU at the same time must add up to at most 1";
    }
  }
}

}  // namespace nlaunch::plan
