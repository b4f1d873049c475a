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
  switch (layer) {
    case Layer::inherited:
      return "inherited";
    case Layer::modules:
      return "modules";
    case Layer::site:
      return "site";
    case Layer::venv:
      return "venv";
    case Layer::experiment:
      return "experiment";
    case Layer::role:
      return "role";
    case Layer::overlay:
      return "overlay";
    case Layer::command_line:
      return "command line";
    case Layer::nlaunch:
      return "nlaunch";
  }
  return "?";
}

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::node:
      return "node";
    case GroupKind::world:
      return "world";
    case GroupKind::tensor_parallel:
      return "tensor-parallel";
    case GroupKind::weight_sync:
      return "weight-sync";
  }
  return "?";
}

}  // namespace nlaunch::plan
