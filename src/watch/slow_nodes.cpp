#include "watch/slow_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "watch/steps.h"

namespace nlaunch::watch {
namespace {

/// Steps of a process before it counts.
constexpr std::size_t kEnoughSteps = 10;
constexpr std::size_t kEnoughNodes = 3;
/// Identical nodes differ by a few percent from one attempt to the next.
constexpr double kSlower = 1.05;
constexpr std::size_t kLastAttempts = 4;
constexpr std::size_t kMostAttempts = 3;

/// `hosts`: the step durations of the processes on each.
std::optional<SlowestNode> slowest_of(const std::map<std::string, std::vector<double>>& hosts) {
  if (hosts.size() < kEnoughNodes) return std::nullopt;
  std::vector<SlowestNode> nodes;
  for (const auto& [host, seconds] : hosts) nodes.push_back({host, median(seconds)});
  const auto slowest = std::ranges::max_element(nodes, {}, &SlowestNode::seconds);
  std::vector<double> others;
  for (const auto& node : nodes)
    if (node.host != slowest->host) others.push_back(node.seconds);
  slowest->others = median(std::move(others));
  if (slowest->others <= 0 || slowest->seconds < slowest->others * kSlower) return std::nullopt;
  return *slowest;
}

}  // namespace

std::optional<SlowestNode> slowest_node(const std::vector<ProcessSteps>& processes) {
  std::map<std::string, std::map<std::string, std::vector<double>>> roles;
  for (const auto& process : processes)
    if (process.steps >= kEnoughSteps && !process.host.empty())
      roles[process.role][process.host].push_back(process.seconds);
  std::optional<SlowestNode> slowest;
  for (auto& [role, hosts] : roles) {
    const auto one = slowest_of(hosts);
    const auto factor = [](const SlowestNode& node) { return node.seconds / node.others; };
    if (one && (!slowest || factor(*one) > factor(*slowest))) slowest = one;
  }
  return slowest;
}

std::optional<SlowNode> slow_in_most(const std::vector<std::optional<SlowestNode>>& attempts) {
  const auto last = std::min(attempts.size(), kLastAttempts);
  std::map<std::string, std::vector<SlowestNode>> by_host;
  for (auto attempt = attempts.end() - static_cast<std::ptrdiff_t>(last); attempt != attempts.end();
       ++attempt)
    if (*attempt) by_host[(*attempt)->host].push_back(**attempt);
  for (const auto& [host, slow] : by_host) {
    if (slow.size() < kMostAttempts) continue;
    const auto& newest = slow.back();
    return SlowNode{host,
                    fmt::format("its steps were the slowest in {} of the last {} attempts: {:.2f} s against "
                                "{:.2f} s on the other nodes in the newest",
                                slow.size(), last, newest.seconds, newest.others)};
  }
  return std::nullopt;
}

}  // namespace nlaunch::watch
