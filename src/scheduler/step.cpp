#include "scheduler/step.h"

#include <algorithm>

#include "base/scheduler_traits.h"
#include "launch/install.h"
#include "launch/job/step.h"
#include "sys/addresses.h"

namespace nlaunch::scheduler {
namespace {

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  for (const auto& one : sys::ipv4_addresses()) addresses.push_back(one.address);
  return addresses;
}

std::filesystem::path step_file(const launch::RunPaths& paths) {
  return paths.attempt / "step.json";
}

std::vector<std::string> agent_command(const launch::RunPaths& paths) {
  return {launch::find_install().program, "agent", "--step", step_file(paths).string()};
}

}  // namespace

std::string StepLauncher::starter() const {
  return std::string(traits_of(plan_.scheduler).step);
}

/// That on the interface of the site, by which its nodes reach each other.
std::string StepLauncher::address() const {
  const auto& interface = plan_.node_of(0).interface;  // the leader's node is of the first pool
  if (interface.empty()) return "";
  const auto all = sys::ipv4_addresses();
  const auto found =
      std::ranges::find_if(all, [&](const auto& one) { return one.interface.starts_with(interface); });
  return found == all.end() ? "" : found->address;
}

Result<fleet::AgentLauncher::Start> StepLauncher::start(const launch::RunPaths& paths, std::uint16_t port,
                                                        const std::string& token) {
  const auto known = address();
  const launch::Step step{(paths.folder / "plan.json").string(),
                          known.empty() ? own_addresses() : std::vector{known}, port, token,
                          counts_as_planned() ? std::vector<std::string>() : nodes()};
  if (const auto written = launch::write_step(step, step_file(paths)); !written)
    return std::unexpected(written.error());
  return start_agents(paths, nodes(), agent_command(paths));
}

fleet::AgentLauncher::Start StepLauncher::start_again(const launch::RunPaths& paths, std::uint32_t node,
                                                      const std::string& host) {
  auto agent = agent_command(paths);
  agent.insert(agent.end(), {"--node", std::to_string(node)});
  return start_agents(paths, {host}, agent);
}

}  // namespace nlaunch::scheduler
