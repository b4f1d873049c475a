#include "scheduler/step.h"

#include <algorithm>

#include "base/scheduler_traits.h"
#include "launch/install.h"
#include "launch/job/step.h"
#include "sys/addresses.h"

namespace nlaunch::scheduler {
namespace {

/// Likely ones first: those on the site's interface, loopback last.
std::vector<std::string> own_addresses(const std::string& interface) {
  auto all = sys::ipv4_addresses();
  std::ranges::stable_partition(all, [&](const sys::InterfaceAddress& one) {
    return !interface.empty() && one.interface.starts_with(interface);
  });
  std::vector<std::string> addresses;
  for (const auto& one : all) addresses.push_back(one.address);
  return addresses;
}

}  // namespace

std::string StepLauncher::starter() const {
  return std::string(traits_of(plan_.scheduler).step);
}

Result<fleet::AgentLauncher::Start> StepLauncher::start(const launch::RunPaths& paths, std::uint16_t port,
                                                        const std::string& token) {
  const auto file = paths.attempt / "step.json";
  const launch::Step step{(paths.folder / "plan.json").string(), own_addresses(plan_.node.interface), port,
                          token};
  if (const auto written = launch::write_step(step, file); !written) return std::unexpected(written.error());
  return start_agents(paths, {launch::find_install().program, "agent", "--step", file.string()});
}

}  // namespace nlaunch::scheduler
