#pragma once
#include <cstdint>
#include <vector>

/// How the agents of many nodes reach their leader: not all directly, but through the agents of other nodes.
/// Node `n` connects to node n / fan_out - 1, and the first `fan_out` nodes connect to the leader. Pure.
namespace nlaunch::fleet {

/// How many agents connect to the leader, and to each agent that relays. 0: all connect to the leader, which
/// is best for up to 256 nodes. Else the square root of the number of nodes: the leader then has few
/// connections, and each message passes through one other agent only.
std::uint32_t fan_out_for(std::uint32_t nodes);
/// The number of nodes whose agents relay for others: the first ones.
std::uint32_t relays_in(std::uint32_t nodes, std::uint32_t fan_out);
/// The nodes between this one and the leader, nearest first.
std::vector<std::uint32_t> relays_of(std::uint32_t node, std::uint32_t fan_out);

}  // namespace nlaunch::fleet
