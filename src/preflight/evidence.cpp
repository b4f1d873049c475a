#include "preflight/evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::preflight {

std::optional<std::string> NodeEvidence::variable(const Rank& rank, const std::string& name) const {
  const auto& env = node.processes[rank.bound].env;
  const auto found = std::ranges::find(env, name, &std::pair<std::string, std::string>::first);
  return found == env.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Evidence::hosts_of(const std::vector<std::size_t>& of) const {
  std::vector<std::string> out;
  for (const auto rank : of) {
    if (hosts.empty()) break;
    const auto& host = hosts.at(ranks[rank].node);
    if (std::ranges::find(out, host) == out.end()) out.push_back(host);
  }
  return out;
}

std::string seconds_text(Duration duration) {
  return fmt::format("{} s", std::chrono::duration<double>(duration).count());
}

std::string message_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1U << 20U;
  return bytes % kMiB == 0 ? format_size(bytes) : fmt::format("{} B", bytes);
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace nlaunch::preflight
