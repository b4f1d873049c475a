#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::plan {

std::string Plan::name_of(const Process& process) const {
  return fmt::format("{}.{}", role_of(process).name, process.index);
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
