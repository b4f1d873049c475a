#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"

/// A step of an allocation: one agent on each node, which finds here what it needs to know.
namespace nlaunch::launch {

/// Where the leader is, and by what it knows its own. step.json of an attempt, mode 0600, where
/// nodes share a folder.
struct Step {
  std::string plan;                    ///< path of plan.json
  std::vector<std::string> addresses;  ///< of the leader, loopback last
  std::uint16_t port = 0;
  std::string token;
  /// Names of the nodes by their index in the plan, where the scheduler counts them in another order; else
  /// empty.
  std::vector<std::string> nodes{};
};

std::filesystem::path step_file(const RunPaths& paths);
Result<void> write_step(const Step& step, const std::filesystem::path& path);
Result<Step> read_step(const std::filesystem::path& path);

/// What an agent is told once it has been let in.
struct Assignment {
  RunPaths paths;
  bool share = false;  ///< use GPUs that another run holds
  bool output = true;  ///< send the processes' output, too
  bool color = false;
  std::size_t name_width = 0;
};

/// Where a file is that the nodes of a run have in common, by its name in messages between those that share
/// no folder. Nothing for any other name: nobody writes elsewhere because somebody says so.
std::optional<std::filesystem::path> common_file(const RunPaths& paths, const std::string& name);

/// By what name an agent's node is known: SLURMD_NODENAME, else the host name.
std::string node_name(const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
