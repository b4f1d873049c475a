#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/ports.h"
#include "plan/plan.h"

/// Who is where: what the nodes of a run must know of each other before their processes can be bound.
namespace nlaunch::launch {

struct NodeAddress {
  std::string host;                    ///< for people
  std::string address;                 ///< by which the other nodes' processes reach this one
  std::vector<std::uint16_t> ports{};  ///< that stand on it, as ports_of() has them
};

/// By index of the node in the plan.
using NodeAddresses = std::vector<NodeAddress>;

/// The addresses as nodes.json of an attempt has it, and read from there.
std::string nodes_text(const NodeAddresses& nodes);
Result<NodeAddresses> read_nodes(std::string_view text);

/// The addresses of a run on one machine: its processes reach each other over loopback.
NodeAddresses one_machine(const std::string& host);

/// Address of the node that a process is on.
const std::string& address_of(const NodeAddresses& nodes, const plan::Process& process);
/// The addresses alone, by index of the node.
std::vector<std::string> addresses_of(const NodeAddresses& nodes);

/// Takes free ports for what stands on `node`, and writes them into the plan: those of its processes, of the
/// rendezvous whose first process is there, of the weight sync that meets there. Wished ones where they are
/// free.
Result<void> claim_ports(plan::Plan& plan, std::uint32_t node, Ports& ports);

/// Where a process wishes to answer questions about NCCL: processes of a node must not share that port, as
/// they would by default (localhost:28028).
std::uint16_t wished_ras_port(const plan::Plan& plan, const plan::Process& process);
/// Such a port for each process of `node` that has GPUs, by index of the process; 0: it has none. Nobody on
/// another node asks there: they are not told.
std::vector<std::uint16_t> claim_ras_ports(const plan::Plan& plan, std::uint32_t node, Ports& ports);

/// The ports that stand on `node`, to be told to the other nodes.
std::vector<std::uint16_t> ports_of(const plan::Plan& plan, std::uint32_t node);
/// Writes the ports of all nodes into the plan. Fails where a node is missing, or has not as many ports as
/// stand on it.
Result<void> take_ports(plan::Plan& plan, const NodeAddresses& nodes);

}  // namespace nlaunch::launch
