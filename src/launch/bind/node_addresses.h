#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/ports.h"
#include "plan/plan.h"

/// Host names, addresses and ports: what the nodes of a run must know of each other before their processes
/// can be bound.
namespace nlaunch::launch {

struct NodeAddress {
  std::string host;                    ///< for messages
  std::string address;                 ///< the address at which the other nodes' processes reach this one
  std::vector<std::uint16_t> ports{};  ///< its ports, as ports_of() returns them
};

/// By index of the node in the plan.
using NodeAddresses = std::vector<NodeAddress>;

/// The addresses in the format of nodes.json of an attempt, and read from it.
std::string nodes_text(const NodeAddresses& nodes);
Result<NodeAddresses> read_nodes(std::string_view text);

/// The addresses of a run on a single machine: its processes connect over loopback.
NodeAddresses one_machine(const std::string& host);

/// Address of the node that a process is on.
const std::string& address_of(const NodeAddresses& nodes, const plan::Process& process);
/// Only the addresses, by index of the node.
std::vector<std::string> addresses_of(const NodeAddresses& nodes);

/// Claims free ports for everything on `node` and writes them into the plan: ports of its processes, of the
/// rendezvous whose first process is there, and of the weight sync that meets there. Preferred ports are used
/// if they are free.
Result<void> claim_ports(plan::Plan& plan, std::uint32_t node, Ports& ports);

/// The preferred port at which a process answers NCCL RAS queries: processes of a node must not share that
/// port, as they would by default (localhost:28028).
std::uint16_t wished_ras_port(const plan::Plan& plan, const plan::Process& process);
/// Such a port for each process of `node` that has GPUs, by index of the process; 0: none. Other nodes are
/// not told, because they do not query it.
std::vector<std::uint16_t> claim_ras_ports(const plan::Plan& plan, std::uint32_t node, Ports& ports);

/// The ports on `node`, to be announced to the other nodes.
std::vector<std::uint16_t> ports_of(const plan::Plan& plan, std::uint32_t node);
/// Writes the ports of all nodes into the plan. Fails if a node is missing or does not have as many ports as
/// the plan has on it.
Result<void> take_ports(plan::Plan& plan, const NodeAddresses& nodes);

}  // namespace nlaunch::launch
