#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kNames = "names";

bool is_loopback(const std::string& address) {
  return address.starts_with("127.");
}

/// Of containers and virtual machines on this node: no other node is reachable through it.
bool is_virtual(const std::string& interface) {
  constexpr std::array<std::string_view, 6> kPrefixes{"docker", "br-", "virbr", "veth", "cni", "podman"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return interface.starts_with(prefix); });
}

/// With it, torch's Gloo finds its interface; without it, by this host's name.
bool gloo_has_its_interface(const NodeObservations& observations) {
  return std::ranges::all_of(observations.first_of_roles(), [](const auto& entry) {
    return variable_of(*entry.second, "GLOO_SOCKET_IFNAME").has_value();
  });
}

struct Name {
  std::string name;
  std::string address;    ///< the first
  std::string interface;  ///< the address at which it is reached
  std::string error;
  bool own = false;  ///< of this host

  [[nodiscard]] std::string subject() const { return own ? "this host's name" : "MASTER_ADDR"; }
  [[nodiscard]] std::string value() const {
    const auto arrow = name == address ? name : fmt::format("{} is {}", name, address);
    return interface.empty() ? arrow : fmt::format("{}, by {}", arrow, interface);
  }
};

/// The ranks cannot connect to a wrong address. A wrong name of the host itself is harmless to programs that
/// do not look it up.
Row name_fault(const Name& name, const std::string& value, const std::string& expected, Remedy remedy) {
  auto row = failed(kNames, name.subject(), value, expected, std::move(remedy));
  if (name.own) row.status = Status::warn;
  return row;
}

Row judge_name(const NodeObservations& observations, const Name& name) {
  const auto& prefix = observations.planned().interface;
  const auto expected = prefix.empty() ? std::string("an address that the other nodes can reach")
                                       : fmt::format("an address of {}*", prefix);
  const Remedy own{
      "Gloo and Ray use it: set GLOO_SOCKET_IFNAME for the roles, and let /etc/hosts or DNS resolve this "
      "host's name to its address in the cluster",
      Responsible::user};
  const Remedy other{
      "name the interface that carries the job's traffic: node.nics.interface in the site profile",
      Responsible::user};
  const auto& remedy = name.own ? own : other;
  if (!name.error.empty())
    return name_fault(name, fmt::format("{}: {}", name.name, name.error), expected, remedy);
  if (is_loopback(name.address)) return name_fault(name, name.value(), expected, remedy);
  if (is_virtual(name.interface)) return name_fault(name, name.value(), expected, remedy);
  if (!prefix.empty() && !name.interface.starts_with(prefix))
    return warned(kNames, name.subject(), name.value(), expected, remedy);
  return passed(kNames, name.subject(), name.value());
}

std::vector<std::string> meeting_points(const NodeObservations& observations,
                                        const plan::BoundProcess* /*process*/) {
  std::vector<std::string> out;
  for (const auto& process : observations.node.processes) {
    auto address = variable_of(process, "MASTER_ADDR").value_or("");
    if (!address.empty() && std::ranges::find(out, address) == out.end()) out.push_back(std::move(address));
  }
  return out;
}

std::vector<Row> check_names(const NodeObservations& observations) {
  const auto* answer = observations.answer("names");
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kNames, "this machine", answer->error)};
  // If this node is reached over loopback, it is on the same machine as the leader, and so are all nodes like
  // it.
  if (is_loopback(observations.address))
    return {skipped(kNames, "this machine", "the nodes are on one machine")};
  std::vector<Row> rows;
  for (const auto& said : answer->said.value("names", json::array())) {
    const auto addresses = said.value("addresses", std::vector<std::string>());
    const Name name{said.value("name", ""), addresses.empty() ? "" : addresses.front(),
                    said.value("interface", ""), said.value("error", ""), said.value("own", false)};
    // nlaunch itself does not look up a host's own name; programs that may (Gloo, Ray) do so on clusters with
    // several networks.
    const bool idle = observations.planned().interface.empty() || gloo_has_its_interface(observations);
    if (!name.own || !idle) rows.push_back(judge_name(observations, name));
  }
  return rows;
}

const Registered<NodeCheck> names_check{{
    .order = 130,
    .name = kNames,
    .what = "the leader's address and this host's own name are on the site's interface, and not loopback or "
            "a container bridge",
    .judge = check_names,
}};

bool on_several_nodes(const NodeObservations& observations) {
  return observations.plan.node.count > 1;
}

const Registered<Inquiry> names_inquiry{{
    .name = kNames,
    .arguments = meeting_points,
    .applies = on_several_nodes,
}};

constexpr auto kClock = "clock";
/// Seconds. NTP keeps the clocks of one room within a few milliseconds.
constexpr double kClockWarn = 0.05;
constexpr double kClockFail = 2;

/// The median node, with whose clock the others are compared: if one of three clocks is wrong, it is a right
/// one.
std::optional<std::size_t> middle_of(const Observations& observations) {
  std::vector<std::size_t> nodes;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (observations.clocks[node]) nodes.push_back(node);
  }
  if (nodes.empty()) return std::nullopt;
  std::ranges::sort(nodes, {}, [&](std::size_t node) { return observations.clocks[node]->seconds; });
  return nodes[(nodes.size() - 1) / 2];
}

double clock_difference(const Observations& observations, std::size_t node, std::size_t middle) {
  return observations.clocks[node]->seconds - observations.clocks[middle]->seconds;
}

Row judge_clock(const Observations& observations, std::size_t node, std::size_t middle) {
  const double seconds = clock_difference(observations, node, middle);
  const auto& host = observations.hosts[node];
  auto row = warned(kClock, host,
                    fmt::format("its clock is {} {} that of {}", time_text(std::abs(seconds)),
                                seconds > 0 ? "ahead of" : "behind", observations.hosts[middle]),
                    "less than 50 ms between two nodes",
                    {"synchronize the clocks with NTP (chronyc tracking shows their state): files and logs "
                     "have wrong times, and expiry times are wrong",
                     Responsible::admin});
  // With two clocks it is impossible to tell which one is wrong.
  if (observations.hosts.size() > 2) row.hosts = {host};
  return row;
}

std::vector<Row> check_clock(const Observations& observations) {
  const auto middle = middle_of(observations);
  if (observations.clocks.empty()) return {};
  std::vector<Row> rows;
  double widest = 0;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (!observations.clocks[node]) {
      rows.push_back(unknown(kClock, observations.hosts[node], "its agent did not answer in time"));
      continue;
    }
    const double apart = std::abs(clock_difference(observations, node, *middle));
    const double doubt =
        (observations.clocks[node]->round_trip + observations.clocks[*middle]->round_trip) / 2;
    widest = std::max(widest, apart);
    if (apart - doubt <= kClockWarn) continue;
    rows.push_back(judge_clock(observations, node, *middle));
    if (apart - doubt > kClockFail) rows.back().status = Status::fail;
  }
  if (rows.empty())
    rows.push_back(passed(kClock, "all nodes", fmt::format("at most {} apart", time_text(widest))));
  return rows;
}

const Registered<Check> clock_check{{
    .order = 20,
    .name = kClock,
    .what = "the nodes' clocks agree: a difference of 50 ms is a warning, 2 s a failure",
    .stage = Stage::before,
    .judge = check_clock,
}};

}  // namespace

std::vector<Figure> clock_figures(const Observations& observations) {
  const auto middle = middle_of(observations);
  std::vector<Figure> out;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (!observations.clocks[node]) continue;
    const auto& host = observations.hosts[node];
    out.push_back({"clock", host, host, observations.hosts[*middle],
                   clock_difference(observations, node, *middle), "s"});
  }
  return out;
}

}  // namespace nlaunch::preflight
