#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kCheck = "names";

bool is_loopback(const std::string& address) {
  return address.starts_with("127.");
}

/// Of containers and virtual machines on this node: no other node is behind it.
bool is_virtual(const std::string& interface) {
  constexpr std::array<std::string_view, 6> kPrefixes{"docker", "br-", "virbr", "veth", "cni", "podman"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return interface.starts_with(prefix); });
}

/// By which torch's Gloo finds its interface; without it, by this host's name.
bool gloo_has_its_interface(const NodeObservations& observations) {
  return std::ranges::all_of(observations.first_of_roles(), [](const auto& entry) {
    return variable_of(*entry.second, "GLOO_SOCKET_IFNAME").has_value();
  });
}

struct Name {
  std::string name;
  std::string address;    ///< the first
  std::string interface;  ///< by which it is reached
  std::string error;
  bool own = false;  ///< of this host

  [[nodiscard]] std::string subject() const { return own ? "this host's name" : "MASTER_ADDR"; }
  [[nodiscard]] std::string value() const {
    const auto arrow = name == address ? name : fmt::format("{} is {}", name, address);
    return interface.empty() ? arrow : fmt::format("{}, by {}", arrow, interface);
  }
};

/// The ranks cannot meet at a wrong address. A wrong name of one's own is harmless to who does not ask for
/// it.
Row fault(const Name& name, const std::string& value, const std::string& expected, Remedy remedy) {
  auto row = failed(kCheck, name.subject(), value, expected, std::move(remedy));
  if (name.own) row.status = Status::warn;
  return row;
}

Row judge(const NodeObservations& observations, const Name& name) {
  const auto& prefix = observations.plan.node.interface;
  const auto expected = prefix.empty() ? std::string("an address that the other nodes reach")
                                       : fmt::format("an address of {}*", prefix);
  const Remedy own{
      "Gloo and Ray ask for it: set GLOO_SOCKET_IFNAME for the roles, and let /etc/hosts or the DNS give "
      "this host its address in the cluster",
      Responsible::user};
  const Remedy other{"name the interface that carries the job: node.nics.interface of the site's profile",
                     Responsible::user};
  const auto& remedy = name.own ? own : other;
  if (!name.error.empty()) return fault(name, fmt::format("{}: {}", name.name, name.error), expected, remedy);
  if (is_loopback(name.address)) return fault(name, name.value(), expected, remedy);
  if (is_virtual(name.interface)) return fault(name, name.value(), expected, remedy);
  if (!prefix.empty() && !name.interface.starts_with(prefix))
    return warned(kCheck, name.subject(), name.value(), expected, remedy);
  return passed(kCheck, name.subject(), name.value());
}

}  // namespace

std::vector<std::string> meeting_points(const NodeObservations& observations) {
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
  if (!answer->error.empty()) return {unknown(kCheck, "this machine", answer->error)};
  // Reached over loopback, this node is on one machine with whoever decides, and so are all that look like
  // it.
  if (is_loopback(observations.address))
    return {skipped(kCheck, "this machine", "the nodes are on one machine")};
  std::vector<Row> rows;
  for (const auto& said : answer->said.value("names", json::array())) {
    const auto addresses = said.value("addresses", std::vector<std::string>());
    const Name name{said.value("name", ""), addresses.empty() ? "" : addresses.front(),
                    said.value("interface", ""), said.value("error", ""), said.value("own", false)};
    // Nothing of nlaunch's asks for a host's own name; what may (Gloo, Ray) does so on clusters with several
    // networks.
    const bool idle = observations.plan.node.interface.empty() || gloo_has_its_interface(observations);
    if (!name.own || !idle) rows.push_back(judge(observations, name));
  }
  return rows;
}

}  // namespace nlaunch::preflight
