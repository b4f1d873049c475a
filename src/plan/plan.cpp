#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace nlaunch::plan {

std::string Plan::name_of(const Process& process) const {
  const auto& role = role_of(process);
  if (!role.replica) return fmt::format("{}.{}", role.name, process.index);
  const auto at = in_replica(role, process);
  return fmt::format("{}.{}.{}", role.name, at.index, at.rank);
}

InReplica in_replica(const Role& role, const Process& process) {
  const auto size = replica_size(role);
  return {process.index / size, process.index % size, process.index - process.index % size};
}

const Pool* Plan::pool_of(std::uint32_t index) const {
  const auto after = std::ranges::upper_bound(pools, index, {}, &Pool::first);
  return after == pools.begin() ? nullptr : &*std::prev(after);
}

const Node& Plan::node_of(std::uint32_t index) const {
  const auto* pool = pool_of(index);
  return pool == nullptr ? node : pool->node;
}

bool Plan::is_borrowed(std::uint32_t index) const {
  const auto* pool = pool_of(index);
  return pool != nullptr && pool->elastic;
}

std::string Plan::name_of_borrowed(std::uint32_t index) const {
  const auto& pool = *pool_of(index);
  return fmt::format("{}.{}", pool.name, index - pool.first);
}

const Node& Plan::node_of(const Role& role) const {
  const auto first =
      std::ranges::find_if(processes, [&](const Process& process) { return &role_of(process) == &role; });
  return first == processes.end() ? node : node_of(first->node);
}

const Role* Plan::find_role(std::string_view role_name) const {
  const auto found = std::ranges::find(roles, role_name, &Role::name);
  return found == roles.end() ? nullptr : &*found;
}

std::vector<std::uint16_t> gpus_in_reach(const Plan& plan, const Process& process) {
  auto gpus = process.gpus;
  const auto& spawner = plan.role_of(process).name;
  for (const auto& other : plan.processes) {
    if (other.node != process.node) continue;
    const auto& by = plan.role_of(other).spawned_by;
    if (std::ranges::find(by, spawner) == by.end()) continue;
    gpus.insert(gpus.end(), other.gpus.begin(), other.gpus.end());
  }
  std::ranges::sort(gpus);
  const auto [first, last] = std::ranges::unique(gpus);
  gpus.erase(first, last);
  return gpus;
}

std::string_view name_of(Layer layer) {
  return layer == Layer::command_line ? "command line" : word_of(layer);
}

std::string_view name_of(GroupKind kind) {
  if (kind == GroupKind::tensor_parallel) return "tensor-parallel";
  return kind == GroupKind::weight_sync ? "weight-sync" : word_of(kind);
}

}  // namespace nlaunch::plan
