#include "scheduler/step.h"

#include <algorithm>

#include "base/scheduler_traits.h"
#include "launch/install.h"
#include "launch/job/step.h"
#include "plan/tolerance.h"
#include "sys/addresses.h"

namespace nlaunch::scheduler {
namespace {

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  for (const auto& one : sys::ipv4_addresses()) addresses.push_back(one.address);
  return addresses;
}

std::vector<std::string> agent_command(const launch::RunPaths& paths) {
  return {launch::find_install().program, "agent", "--step", launch::step_file(paths).string()};
}

}  // namespace

std::string StepLauncher::starter() const {
  return std::string(traits_of(plan_.scheduler).step);
}

/// The address on the site's interface, through which its nodes reach each other.
std::string StepLauncher::address() const {
  const auto& interface = plan_.node_of(0).interface;  // the leader's node is in the first pool
  if (interface.empty()) return "";
  const auto all = sys::ipv4_addresses();
  const auto found =
      std::ranges::find_if(all, [&](const auto& one) { return one.interface.starts_with(interface); });
  return found == all.end() ? "" : found->address;
}

Result<void> StepLauncher::announce(const launch::RunPaths& paths, std::uint16_t port,
                                    const std::string& token) {
  const auto known = address();
  const launch::Step step{(paths.folder / "plan.json").string(),
                          known.empty() ? own_addresses() : std::vector{known}, port, token,
                          counts_as_planned() && steps().size() == 1 ? std::vector<std::string>() : nodes()};
  return launch::write_step(step, launch::step_file(paths));
}

Result<std::vector<fleet::AgentLauncher::Start>> StepLauncher::start(const launch::RunPaths& paths,
                                                                     std::uint16_t port,
                                                                     const std::string& token) {
  if (const auto announced = announce(paths, port, token); !announced)
    return std::unexpected(announced.error());
  std::vector<Start> starts;
  for (const auto& hosts : steps()) starts.push_back(start_agents(paths, hosts, agent_command(paths)));
  return starts;
}

/// A scheduler may kill all of a step when it loses one of its nodes.
std::vector<std::vector<std::string>> StepLauncher::steps() const {
  constexpr std::size_t kMost = 16;  // in addition to the first: each has a program here
  const auto all = nodes();
  const auto dispensable = plan::dispensable_nodes(plan_);
  std::vector<std::vector<std::string>> steps(1);
  std::vector<std::string> others;
  for (std::size_t node = 0; node < all.size(); ++node)
    (divides() && dispensable[node] ? others : steps.front()).push_back(all[node]);
  const auto size = (others.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (i % size == 0) steps.emplace_back();
    steps.back().push_back(others[i]);
  }
  return steps;
}

fleet::AgentLauncher::Start StepLauncher::start_again(const launch::RunPaths& paths, std::uint32_t node,
                                                      const std::string& host) {
  auto agent = agent_command(paths);
  agent.insert(agent.end(), {"--node", std::to_string(node)});
  return start_agents(paths, {host}, agent);
}

}  // namespace nlaunch::scheduler
