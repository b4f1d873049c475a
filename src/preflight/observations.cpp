#include "preflight/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace nlaunch::preflight {

std::optional<std::string> variable_of(const plan::BoundProcess& process, std::string_view name) {
  const auto found = std::ranges::find(process.env, name, &std::pair<std::string, std::string>::first);
  return found == process.env.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> NodeObservations::variable(const Rank& rank, const std::string& name) const {
  return variable_of(node.processes[rank.bound], name);
}

const plan::Node& NodeObservations::planned() const {
  return plan.node_of(node.index);
}

bool NodeObservations::for_the_machine() const {
  return std::ranges::find(plan.sources, plan.experiment) == plan.sources.end();
}

std::map<std::uint32_t, const plan::BoundProcess*> NodeObservations::first_of_roles() const {
  std::map<std::uint32_t, const plan::BoundProcess*> out;
  for (const auto& process : node.processes) out.try_emplace(plan.processes[process.process].role, &process);
  return out;
}

std::vector<std::string> Observations::hosts_of(const std::vector<std::size_t>& of) const {
  std::vector<std::string> out;
  std::set<std::uint32_t> seen;
  for (const auto rank : of) {
    const auto node = ranks[rank].node;
    if (!hosts.empty() && seen.insert(node).second) out.push_back(hosts.at(node));
  }
  return out;
}

bool Observations::crosses_nodes(const GroupTrial& group) const {
  return std::ranges::any_of(
      group.members, [&](std::size_t rank) { return ranks[rank].node != ranks[group.members.front()].node; });
}

std::vector<std::string> Observations::host_of(const GroupTrial& group) const {
  return crosses_nodes(group) ? std::vector<std::string>() : hosts_of(group.members);
}

std::string seconds_text(Duration duration) {
  return fmt::format("{} s", std::chrono::duration<double>(duration).count());
}

std::string message_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1U << 20U;
  return bytes % kMiB == 0 ? format_size(bytes) : fmt::format("{} B", bytes);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1U << 20U;
  constexpr std::uint64_t kGiB = 1U << 30U;
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / double(kGiB));
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / double(kMiB));
  return fmt::format("{} kiB", bytes / 1024);
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string age_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  constexpr double kDay = 86400;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.0f} h", seconds / kHour);
  return fmt::format("{:.0f} days", seconds / kDay);
}

}  // namespace nlaunch::preflight
