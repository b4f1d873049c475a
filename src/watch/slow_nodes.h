#pragma once
#include <optional>
#include <string>
#include <vector>

/// Which node is slower than the others, over the attempts of a run. Pure.
namespace nlaunch::watch {

/// How long the steps of one process take, as it reports them.
struct ProcessSteps {
  std::string role;
  std::string host;
  double seconds = 0;     ///< the median
  std::size_t steps = 0;  ///< on which the median is based
};

/// The node of an attempt whose processes take longest per step, compared with others of their role.
struct SlowestNode {
  std::string host;
  double seconds = 0;  ///< the median of its processes
  double others = 0;   ///< that of the other nodes
};

/// Empty if no node is 5 % slower than the others, or if fewer than three nodes of a role report: with two,
/// either could be the normal one. Among several roles, the node that is slowest relative to the others.
std::optional<SlowestNode> slowest_node(const std::vector<ProcessSteps>& processes);

/// A node that was the slowest in three of the last four attempts, and the reason as a sentence.
struct SlowNode {
  std::string host;
  std::string reason;
};
/// `attempts`: the slowest node of each, from the first attempt on.
std::optional<SlowNode> slow_in_most(const std::vector<std::optional<SlowestNode>>& attempts);

}  // namespace nlaunch::watch
