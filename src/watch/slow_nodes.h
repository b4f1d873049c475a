#pragma once
#include <optional>
#include <string>
#include <vector>

/// Which node is slower than the others, over the attempts of a run. Pure.
namespace nlaunch::watch {

/// How long the steps of one process take, by its own word.
struct ProcessSteps {
  std::string role;
  std::string host;
  double seconds = 0;     ///< the median
  std::size_t steps = 0;  ///< that it is of
};

/// The node of an attempt whose processes take longest for a step, beside others of their role.
struct SlowestNode {
  std::string host;
  double seconds = 0;  ///< the median of its processes
  double others = 0;   ///< that of the other nodes
};

/// Nothing where no node is 5 % slower than the others, or where fewer than three nodes of a role tell: of
/// two, either could be the one that is as it should be. Of several roles, the node that is slower by most.
std::optional<SlowestNode> slowest_node(const std::vector<ProcessSteps>& processes);

/// A node that was the slowest in three of the last four attempts, and why, as a sentence.
struct SlowNode {
  std::string host;
  std::string reason;
};
/// `attempts`: of each, from the first on.
std::optional<SlowNode> slow_in_most(const std::vector<std::optional<SlowestNode>>& attempts);

}  // namespace nlaunch::watch
