#include "launch/bind/node_addresses.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "plan/groups.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;

/// Calls `then` with each port and its node, always in the same order.
template <class Plan, class Then>
void for_each_port(Plan& plan, Then&& then) {
  for (auto& sync : plan.weight_syncs) then(plan::sync_node(plan, sync), sync.port);
  for (std::uint32_t role = 0; role < plan.roles.size(); ++role) {
    const auto first = std::ranges::find(plan.processes, role, &plan::Process::role);
    if (first != plan.processes.end() && plan.roles[role].rendezvous == Rendezvous::torch)
      then(first->node, plan.roles[role].rendezvous_port);
  }
  for (auto& process : plan.processes) {
    for (auto& port : process.ports) then(process.node, port);
  }
}

}  // namespace

std::string nodes_text(const NodeAddresses& nodes) {
  auto out = json::array();
  for (const auto& node : nodes)
    out.push_back({{"host", node.host}, {"address", node.address}, {"ports", node.ports}});
  return json_text(out) + "\n";
}

Result<NodeAddresses> read_nodes(std::string_view text) {
  try {
    NodeAddresses nodes;
    for (const auto& node : parse_json_or_throw(text))
      nodes.push_back({node.at("host"), node.at("address"), node.at("ports")});
    return nodes;
  } catch (const json::exception& error) {
    return failure("launch.nodes", "cannot read nodes.json: {}", error.what());
  }
}

NodeAddresses one_machine(const std::string& host) {
  return {{host, "127.0.0.1"}};
}

const std::string& address_of(const NodeAddresses& nodes, const plan::Process& process) {
  return nodes.at(process.node).address;
}

std::vector<std::string> addresses_of(const NodeAddresses& nodes) {
  std::vector<std::string> out;
  for (const auto& node : nodes) out.push_back(node.address);
  return out;
}

Result<void> claim_ports(plan::Plan& plan, std::uint32_t node, Ports& ports) {
  bool all = true;
  for_each_port(plan, [&](std::uint32_t where, std::uint16_t& port) {
    if (where != node) return;
    const auto free = ports.take(port);
    all = all && free.has_value();
    port = free.value_or(port);
  });
  if (all) return {};
  return failure("launch.ports", "no TCP port is free between {} and {}", ports.range().first,
                 ports.range().last);
}

std::uint16_t wished_ras_port(const plan::Plan& plan, const plan::Process& process) {
  constexpr std::uint32_t kFirst = 12000;  // below those claimed for servers
  constexpr std::uint32_t kPorts = 7000;
  constexpr std::uint32_t kApart = 1000;
  const auto index = static_cast<std::uint32_t>(&process - plan.processes.data()) % kApart;
  return static_cast<std::uint16_t>(kFirst + plan.weight_syncs.front().port % kPorts + index);
}

std::vector<std::uint16_t> claim_ras_ports(const plan::Plan& plan, std::uint32_t node, Ports& ports) {
  std::vector<std::uint16_t> claimed(plan.processes.size());
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    const auto& process = plan.processes[i];
    if (process.node == node && !plan.node.cpu_slots && !process.gpus.empty())
      claimed[i] = ports.take(wished_ras_port(plan, process)).value_or(0);
  }
  return claimed;
}

std::vector<std::uint16_t> ports_of(const plan::Plan& plan, std::uint32_t node) {
  std::vector<std::uint16_t> out;
  for_each_port(plan, [&](std::uint32_t where, std::uint16_t port) {
    if (where == node) out.push_back(port);
  });
  return out;
}

Result<void> take_ports(plan::Plan& plan, const NodeAddresses& nodes) {
  std::vector<std::size_t> next(nodes.size());
  bool all = nodes.size() == plan.all_nodes();
  for_each_port(plan, [&](std::uint32_t where, std::uint16_t& port) {
    const bool known = where < nodes.size() && next[where] < nodes[where].ports.size();
    if (known) port = nodes[where].ports[next[where]++];
    all = all && known;
  });
  if (all) return {};
  return failure("launch.nodes", "nodes.json does not have every port of the plan's {}",
                 text::count(plan.all_nodes(), "node"));
}

}  // namespace nlaunch::launch
