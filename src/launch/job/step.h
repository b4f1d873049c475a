#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"

/// A step of an allocation: one agent on each node, which finds its parameters here.
namespace nlaunch::launch {

/// Where the leader is, and how agents authenticate. step.json of an attempt, mode 0600, if the nodes share a
/// directory.
struct Step {
  std::string plan;                    ///< path of plan.json
  std::vector<std::string> addresses;  ///< of the leader, loopback last
  std::uint16_t port = 0;
  std::string token;
  /// Names of the nodes by their index in the plan, if the scheduler numbers them differently; else empty.
  std::vector<std::string> nodes{};
  /// If not all agents connect to the leader: how they do (fleet/tree.h).
  std::uint32_t fan_out = 0;
  std::vector<std::string> relays{};  ///< the nodes whose agents relay for others: the first ones of the plan
  std::uint16_t relay_port = 0;       ///< of node 0; node n has relay_port + n
};

std::filesystem::path step_file(const RunPaths& paths);
Result<void> write_step(const Step& step, const std::filesystem::path& path);
Result<Step> read_step(const std::filesystem::path& path);

/// What an agent is told once it is admitted.
struct Assignment {
  RunPaths paths;
  bool share = false;  ///< use GPUs that another run holds
  bool output = true;  ///< also send the processes' output
  bool color = false;
  std::size_t name_width = 0;
};

/// The path of a file that the nodes of a run have in common, from its name in messages between nodes that
/// share no directory. Empty for any other name: a message cannot make a node write elsewhere.
std::optional<std::filesystem::path> common_file(const RunPaths& paths, const std::string& name);

/// The name of an agent's node: SLURMD_NODENAME, else the host name.
std::string node_name(const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
