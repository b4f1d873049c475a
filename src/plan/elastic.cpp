#include "plan/elastic.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scheduler_traits.h"
#include "base/text.h"
#include "config/pools.h"
#include "plan/groups.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kOwnNodes =
    "put the role in a pool with `nodes`, whose nodes belong to the run's own job";

/// The number of replicas of a role on the fewest nodes with which the run can start, whichever nodes those
/// are.
std::size_t replicas_at_first(const Plan& plan, std::uint32_t role) {
  std::size_t at_first = 0;
  for (const auto& process : plan.processes) {
    const bool leads = in_replica(plan.roles[role], process).rank == 0;
    if (process.role == role && leads && !plan.is_borrowed(process.node)) ++at_first;
  }
  for (const auto& pool : plan.pools) {
    if (!pool.elastic) continue;
    std::vector<std::size_t> by_node;
    for (const auto& node : processes_by_node(plan, pool)) {
      if (node.empty()) continue;  // such a node is not requested
      by_node.push_back(static_cast<std::size_t>(std::ranges::count_if(node, [&](std::uint32_t process) {
        const auto& one = plan.processes[process];
        return one.role == role && in_replica(plan.roles[role], one).rank == 0;
      })));
    }
    std::ranges::sort(by_node);
    for (std::size_t i = 0; i < std::min<std::size_t>(pool.elastic->min, by_node.size()); ++i)
      at_first += by_node[i];
  }
  return at_first;
}

/// Why this role cannot use nodes that join and leave, and what to write instead; empty: it can.
struct Reason {
  std::string why;
  std::string hint;
};
Reason reason_against(const Plan& plan, std::uint32_t index) {
  const auto& role = plan.roles[index];
  if (role.ends_run || role.kind == RoleKind::learner)
    return {fmt::format("the run cannot continue without role '{}'", role.name), kOwnNodes};
  if (role.ready.exited)
    return {fmt::format("role '{}' is a task that other roles wait for", role.name), kOwnNodes};
  if (role.rendezvous != Rendezvous::none)
    return {
        fmt::format("the processes of role '{}' share one communicator, which fails when one of them ends",
                    role.name),
        kOwnNodes};
  if (!role.spawned_by.empty())
    return {fmt::format("the processes of role '{}' are started by another role, on nodes that it knows",
                        role.name),
            kOwnNodes};
  if (role.replica && role.replica->nodes > 1)
    return {fmt::format("a replica of role '{}' spans {} nodes, while each borrowed node joins separately",
                        role.name, role.replica->nodes),
            kOwnNodes};
  if (role.keep_together && role.keep_together->within != Closeness::node)
    return {
        fmt::format("role '{}' must be kept together, which cannot be ensured for borrowed nodes", role.name),
        "remove 'keep_together', or " + std::string(kOwnNodes)};
  if (!role.tolerate)
    return {fmt::format("role '{}' does not tolerate the loss of a process", role.name),
            "write tolerate: {min: N}, the fewest with which the run continues; with 0 it waits for the next "
            "one"};
  for (const auto& sync : plan.weight_syncs) {
    const bool is_in = std::ranges::any_of(sync_members(plan, sync), [&](const Member& member) {
      const auto& process = plan.processes[member.process];
      return process.role == index && plan.is_borrowed(process.node);
    });
    if (is_in)
      return {fmt::format("the weight sync over {} includes all of role '{}' as ranks from the start",
                          name_of(sync.backend), role.name),
              "write weight_sync: {backend: disk}, or {backend: none} if the trainer creates its groups "
              "itself as engines join"};
  }
  return {};
}

}  // namespace

std::vector<std::vector<std::uint32_t>> processes_by_node(const Plan& plan, const Pool& pool) {
  std::vector<std::vector<std::uint32_t>> nodes(pool.node.count);
  for (std::uint32_t i = 0; i < plan.processes.size(); ++i) {
    const auto& process = plan.processes[i];
    if (process.node < pool.first || process.node - pool.first >= pool.node.count) continue;
    if (plan.role_of(process).spawned_by.empty()) nodes[process.node - pool.first].push_back(i);
  }
  return nodes;
}

void check_pools(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics) {
  const auto& scheduler = traits_of(plan.scheduler);
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const auto& elastic = experiment.pools[i].elastic;
    if (!elastic) continue;
    const auto& pool = plan.pools[i];
    if (!scheduler.lends) {
      diagnostics
          .error("plan.elastic", elastic->span,
                 fmt::format("the nodes of the elastic pool '{}' are small Slurm jobs, but site '{}' {}",
                             pool.name, plan.site,
                             scheduler.this_machine ? std::string("is one machine")
                                                    : fmt::format("uses {}", scheduler.title)))
          .hint = "write nodes: N, or choose another --site (`nlaunch sites` lists them)";
    } else if (pool.node.count < elastic->min.value) {
      diagnostics
          .error("plan.elastic", elastic->min.span,
                 fmt::format("pool '{}' has {}, but its min is {}", pool.name,
                             text::count(pool.node.count, "node"), elastic->min.value))
          .hint = "use a larger --nodes or a smaller min";
    }
  }
  const bool all = !plan.pools.empty() &&
                   std::ranges::all_of(plan.pools, [](const Pool& pool) { return pool.elastic.has_value(); });
  if (all)
    diagnostics
        .error("plan.elastic", experiment.pools.front().elastic->span,
               "all pools are elastic, so the run's own job has no node")
        .hint = "add a pool with at least `nodes: 1` for the learners and for nlaunch itself";
}

void check_elastic(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics) {
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) {
    const auto* pool = config::elastic_pool_of(experiment.roles[i], experiment.pools);
    if (pool == nullptr) continue;
    const auto& role = plan.roles[i];
    if (auto [why, hint] = reason_against(plan, i); !why.empty()) {
      diagnostics
          .error("plan.elastic", pool->span,
                 fmt::format("{}, but the nodes of the elastic pool '{}' come and go", why, pool->value))
          .hint = std::move(hint);
      continue;
    }
    const auto at_first = replicas_at_first(plan, i);
    if (at_first >= *role.tolerate) continue;
    diagnostics
        .error("plan.elastic", experiment.roles[i].tolerate_span,
               fmt::format("{} of role '{}' must remain, but the run starts with {}", *role.tolerate,
                           role.name, at_first))
        .hint = fmt::format("use a smaller number here, or a larger `elastic.min` of pool '{}'", pool->value);
  }
}

}  // namespace nlaunch::plan
