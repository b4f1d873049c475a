#include "scheduler/step.h"

#include <algorithm>

#include "base/scheduler_traits.h"
#include "fleet/tree.h"
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

launch::Step StepLauncher::step(const launch::RunPaths& paths, std::uint16_t port,
                                const std::string& token) const {
  const auto known = address();
  return {(paths.folder / "plan.json").string(), known.empty() ? own_addresses() : std::vector{known}, port,
          token, counts_as_planned() && steps().size() == 1 ? std::vector<std::string>() : nodes()};
}

/// After a takeover no agent relays: those that did have lost their own leader, and so have all below them.
Result<void> StepLauncher::announce(const launch::RunPaths& paths, std::uint16_t port,
                                    const std::string& token) {
  return launch::write_step(step(paths, port, token), launch::step_file(paths));
}

std::uint32_t StepLauncher::fan_out() const {
  const auto names = nodes();
  const bool are_known = std::ranges::none_of(names, &std::string::empty);
  if (!are_known) return 0;
  return plan_.fan_out.value_or(fleet::fan_out_for(static_cast<std::uint32_t>(names.size())));
}

std::uint32_t StepLauncher::relayed() const {
  const auto direct = fan_out();
  const auto all = static_cast<std::uint32_t>(nodes().size());
  return direct == 0 || direct >= all ? 0 : all - direct;
}

Result<std::vector<fleet::AgentLauncher::Start>> StepLauncher::start(const launch::RunPaths& paths,
                                                                     std::uint16_t port,
                                                                     const std::string& token) {
  auto told = step(paths, port, token);
  told.fan_out = fan_out();
  told.relays = nodes();
  told.relays.resize(fleet::relays_in(static_cast<std::uint32_t>(told.relays.size()), told.fan_out));
  // Near the leader's own port, which was free. A node where one of them is taken does not relay.
  constexpr std::size_t kLastPort = 65'535;
  const auto relays = told.relays.size();
  told.relay_port = static_cast<std::uint16_t>(port + relays < kLastPort ? port + 1 : port - relays);
  if (const auto written = launch::write_step(told, launch::step_file(paths)); !written)
    return std::unexpected(written.error());
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
