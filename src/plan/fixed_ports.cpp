#include "plan/fixed_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"
#include "plan/container.h"
#include "sys/net_check.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kInstead = "`ports: [http]` with ${self.ports.http} gives each process its own port";

struct FixedPort {
  std::uint32_t role = 0;
  int number = 0;
  SourceSpan span;
  bool is_checked = false;  ///< the readiness check uses it
};

std::optional<int> port_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  const bool whole = error == std::errc() && end == text.end();
  return whole && number > 0 && number < 65536 ? std::optional(number) : std::nullopt;
}

/// On the process's own node: a check of another node's port says nothing about the role's ports.
bool is_own(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "0.0.0.0";
}

/// The port of "${self.host}:8000" or "http://127.0.0.1:8000/health".
std::optional<int> port_of_check(const Ready& ready) {
  constexpr std::string_view kSelf = "${self.host}";
  auto address = ready.http.empty() ? ready.tcp : ready.http;
  if (const auto at = address.find(kSelf); at != std::string::npos)
    address.replace(at, kSelf.size(), "127.0.0.1");
  if (address.empty() || address.contains("${")) return std::nullopt;
  sys::Endpoint endpoint;
  if (const auto url = sys::parse_http_url(address); url && !ready.http.empty()) endpoint = url->endpoint;
  if (const auto plain = sys::parse_endpoint(address); plain && ready.http.empty()) endpoint = *plain;
  return is_own(endpoint.host) ? port_in(endpoint.port) : std::nullopt;
}

std::optional<int> port_of_words(const std::vector<std::string>& words, std::size_t at) {
  constexpr std::string_view kOption = "--port";
  const std::string_view word = words[at];
  if (word.starts_with("--port=")) return port_in(word.substr(kOption.size() + 1));
  return word == kOption && at + 1 < words.size() ? port_in(words[at + 1]) : std::nullopt;
}

/// The words of a command that contain a port, by index.
std::map<std::uint16_t, std::size_t> places_of_ports(const std::vector<std::string>& command) {
  std::map<std::uint16_t, std::size_t> found;
  for (std::size_t at = 0; at < command.size(); ++at) {
    if (const auto port = port_of_words(command, at))
      found.try_emplace(static_cast<std::uint16_t>(*port), at);
  }
  return found;
}

std::vector<FixedPort> fixed_ports(const config::Experiment& experiment, const Plan& plan) {
  std::vector<FixedPort> found;
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) {
    const auto& role = plan.roles[i];
    const auto& written = experiment.roles[i];
    if (const auto number = port_of_check(role.ready); number && written.ready) {
      found.push_back({i, *number, written.ready->span, true});
    } else if (role.kind != RoleKind::learner) {
      // A launcher's words come before those of the command.
      const auto before = role.command.size() - std::min(role.command.size(), written.command.size());
      for (const auto& [port, at] : places_of_ports(role.command))
        if (at >= before) found.push_back({i, port, written.command[at - before].span, false});
    }
  }
  return found;
}

/// The names of the role's processes by node.
std::map<std::uint32_t, std::vector<std::string>> by_node(const Plan& plan, std::uint32_t role) {
  std::map<std::uint32_t, std::vector<std::string>> names;
  for (const auto& process : plan.processes) {
    if (process.role == role) names[process.node].push_back(plan.name_of(process));
  }
  return names;
}

/// "engine.0 and engine.1 on node 0": the first node on which two use it; empty if there is none.
std::string who_shares(const Plan& plan, const FixedPort& a, const FixedPort& b) {
  const auto others = by_node(plan, b.role);
  for (auto [node, names] : by_node(plan, a.role)) {
    if (a.role != b.role) {
      const auto found = others.find(node);
      if (found == others.end()) continue;
      names.insert(names.end(), found->second.begin(), found->second.end());
    }
    if (names.size() > 1) return fmt::format("{} on node {}", text::join(names, " and "), node);
  }
  return {};
}

}  // namespace

std::vector<std::uint16_t> ports_in(const std::vector<std::string>& command) {
  std::vector<std::uint16_t> ports;
  for (const auto& [port, at] : places_of_ports(command)) ports.push_back(port);
  return ports;
}

std::vector<FixedPortOf> fixed_ports_of(const Role& role) {
  if (role.kind == RoleKind::learner || is_container(role.wrapper)) return {};
  const bool engine = role.kind == RoleKind::engine;
  std::vector<FixedPortOf> found;
  if (const auto number = port_of_check(role.ready))
    found.push_back({static_cast<std::uint16_t>(*number), engine});
  for (const auto& [port, at] : places_of_ports(role.command)) {
    const auto same = std::ranges::find(found, port, &FixedPortOf::number);
    if (same == found.end())
      found.push_back({port, engine});
    else
      same->sure = true;
  }
  return found;
}

void check_fixed_ports(const config::Experiment& experiment, Plan& plan, Diagnostics& diagnostics) {
  const auto ports = fixed_ports(experiment, plan);
  for (auto a = ports.begin(); a != ports.end(); ++a) {
    for (auto b = a; b != ports.end(); ++b) {
      if (a->number != b->number || (a != b && a->role == b->role)) continue;
      const auto who = who_shares(plan, *a, *b);
      if (who.empty()) continue;
      if (a->is_checked && b->is_checked) {
        diagnostics
            .error("plan.port", b->span, fmt::format("{} are checked on the same port, {}", who, b->number))
            .hint = kInstead;
      } else {
        plan.warnings.push_back(fmt::format("{} use the same port, {}: {}", who, b->number, kInstead));
      }
    }
  }
}

}  // namespace nlaunch::plan
