#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind.h"

/// A step of an allocation: one agent on each node, which finds here what it needs to know.
namespace nlaunch::launch {

/// step.json of an attempt, mode 0600: the token keeps strangers from the run's port.
struct Step {
  std::string plan;  ///< path of plan.json
  RunPaths paths;
  std::vector<std::string> addresses;  ///< of the one who decides, likely ones first
  std::uint16_t port = 0;
  std::string token;
  bool share = false;  ///< use GPUs that another run holds
  bool output = true;  ///< send the processes' output, too
  bool color = false;
  std::size_t name_width = 0;
};

Result<void> write_step(const Step& step, const std::filesystem::path& path);
Result<Step> read_step(const std::filesystem::path& path);

/// 32 hexadecimal digits that nobody can guess.
std::string new_token();

/// By what name an agent's node is known: SLURMD_NODENAME, else the host name.
std::string node_name(const std::vector<std::string>& environment);

}  // namespace nlaunch::launch
