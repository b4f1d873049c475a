#include "launch/directory.h"

#include <algorithm>

namespace nlaunch::launch {
namespace {

/// Calls `then` with each port that stands on the node, always in the same order.
template <class Plan, class Then>
void for_each_port(Plan& plan, std::uint32_t node, Then&& then) {
  if (sync_node(plan) == node) then(plan.weight_sync.port);
  for (std::uint32_t role = 0; role < plan.roles.size(); ++role) {
    const auto first = std::ranges::find(plan.processes, role, &plan::Process::role);
    const bool here = first != plan.processes.end() && first->node == node;
    if (here && plan.roles[role].rendezvous == Rendezvous::torch) then(plan.roles[role].rendezvous_port);
  }
  for (auto& process : plan.processes) {
    if (process.node != node) continue;
    for (auto& port : process.ports) then(port);
  }
}

}  // namespace

Directory one_machine(const std::string& host) {
  return {{host, "127.0.0.1"}};
}

const std::string& address_of(const Directory& directory, const plan::Process& process) {
  return directory.at(process.node).address;
}

std::uint32_t sync_node(const plan::Plan& plan) {
  const auto group = std::ranges::find(plan.groups, plan::GroupKind::weight_sync, &plan::Group::kind);
  return group == plan.groups.end() ? 0 : plan.processes[group->members.front().process].node;
}

Result<void> claim_ports(plan::Plan& plan, std::uint32_t node, Ports& ports) {
  bool all = true;
  for_each_port(plan, node, [&](std::uint16_t& port) {
    const auto free = ports.take(port);
    all = all && free.has_value();
    port = free.value_or(port);
  });
  if (all) return {};
  return failure("launch.ports", "no TCP port is free between 20000 and 31999");
}

nlohmann::json ports_of(const plan::Plan& plan, std::uint32_t node) {
  auto out = nlohmann::json::array();
  for_each_port(plan, node, [&](std::uint16_t port) { out.push_back(port); });
  return out;
}

void take_ports(plan::Plan& plan, std::uint32_t node, const nlohmann::json& ports) {
  std::size_t next = 0;
  for_each_port(plan, node, [&](std::uint16_t& port) { port = ports.at(next++); });
}

}  // namespace nlaunch::launch
