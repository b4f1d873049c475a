#include "plan/demand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scheduler_traits.h"
#include "base/text.h"

namespace nlaunch::plan {

namespace {

/// The stage in which a role starts: what others spawn is there when the first of them is.
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

}  // namespace

std::vector<Demand> demands_of(const config::Experiment& experiment) {
  const auto index_of = [&](const std::string& name) {
    const auto found =
        std::ranges::find_if(experiment.roles, [&](const auto& r) { return r.name.value == name; });
    return static_cast<std::size_t>(found - experiment.roles.begin());
  };
  std::vector<Demand> demands;
  for (const auto& role : experiment.roles) {
    Demand demand{role.name.value, Demand::Spread::count, 1, role.gpus.value, std::nullopt, {}};
    if (role.per_node)
      demand = {role.name.value, Demand::Spread::per_node, role.per_node->value, role.gpus.value, {}, {}};
    if (role.count) demand.number = role.count->value;
    if (role.per && role.per->value == config::Role::Per::node) demand.spread = Demand::Spread::per_node;
    if (role.except) demand.except = index_of(role.except->value);
    for (const auto& spawner : role.spawned_by) demand.spawners.push_back(index_of(spawner.value));
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
  auto& error = diagnostics.error(
      "plan.does-not-fit", span,
      fmt::format("role '{}': {} of {}{} {} not fit on {} × {}: {} {}{}, and {} {} idle", demand.name,
                  text::count(demand.number, "process"), text::count(demand.gpus, "GPU"),
                  per_node ? " on each node" : "", demand.number == 1 ? "does" : "do",
                  text::count(plan.node.count, "node"), text::count(plan.node.gpus, "GPU"),
                  misfit.fit == 0 ? "none" : std::to_string(misfit.fit), misfit.fit == 1 ? "fits" : "fit",
                  per_node ? " on each" : "", text::count(misfit.idle, "GPU"),
                  misfit.idle == 1 ? "stays" : "stay"));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i == misfit.demand || wanted[i].gpus == 0) continue;
    error.notes.push_back({fmt::format("role '{}' takes {}{}", wanted[i].name,
                                       text::count(wanted[i].number * wanted[i].gpus, "GPU"),
                                       wanted[i].spread == Demand::Spread::per_node ? " on each node" : ""),
                           experiment.roles[i].name.span});
  }
  if (demand.gpus > 1) error.notes.push_back({"a process never spans two nodes", {}});
  std::vector<std::string> ways;
  const auto key = per_node ? "per_node" : "count";
  if (misfit.fit > 0) ways.push_back(fmt::format("--set roles.{}.{}={}", demand.name, key, misfit.fit));
  if (misfit.on_nodes && !traits_of(plan.scheduler).this_machine)
    ways.push_back(fmt::format("--nodes {}", *misfit.on_nodes));
  error.hint = text::join(ways, ", or ");
}

}  // namespace nlaunch::plan
