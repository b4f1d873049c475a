#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "probe/question.h"
#include "sys/addresses.h"
#include "sys/files.h"
#include "sys/nics.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

/// `nics [ROOT]`: the network adapters below ROOT ("/"), from sysfs, without libfabric:
///   event "nics"; nics [{name, kind ("cxi", "ib", "roce", "efa"), driver, interface, state, up, gbits,
///   device, device_error (text, if this user cannot open the device)}], idle [{bus_id, kind, id}]: cards
///   of those kinds without a driver.
json examine_nics(Arguments arguments) {
  const std::filesystem::path root = arguments.empty() ? "/" : arguments[0];
  json out{{"event", "nics"}, {"nics", json::array()}, {"idle", json::array()}};
  for (const auto& nic : sys::find_nics(root / "sys", root / "dev")) {
    json one{{"name", nic.name},   {"kind", nic.kind}, {"driver", nic.driver}, {"interface", nic.interface},
             {"state", nic.state}, {"up", nic.up},     {"gbits", nic.gbits},   {"device", nic.device}};
    if (!nic.device_error.empty()) one["device_error"] = nic.device_error;
    out["nics"].push_back(std::move(one));
  }
  for (const auto& card : sys::cards_without_driver(root / "sys"))
    out["idle"].push_back({{"bus_id", card.bus_id}, {"kind", card.kind}, {"id", card.id}});
  return out;
}

const Registered<Question> nics_question{{
    .order = 100,
    .name = "nics",
    .arguments = "[ROOT]",
    .what = "the network adapters that the kernel lists (below ROOT)",
    .answer = examine_nics,
}};

using FoundAddresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

std::string text_of_address(const sockaddr* address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
  return ::inet_ntop(AF_INET, &ipv4->sin_addr, text.data(), text.size()) == nullptr ? "" : text.data();
}

/// The interface whose address the kernel would send from. Nothing is sent.
std::string interface_towards(const addrinfo& to) {
  const sys::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto target = *reinterpret_cast<const sockaddr_in*>(to.ai_addr);
  target.sin_port = htons(9);  // any will do
  sockaddr_in source{};
  socklen_t size = sizeof source;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&source), &size) != 0)
    return "";
  const auto address = text_of_address(reinterpret_cast<const sockaddr*>(&source));
  const auto all = sys::ipv4_addresses();
  const auto found = std::ranges::find(all, address, &sys::InterfaceAddress::address);
  return found == all.end() ? "" : found->interface;
}

json resolve(const std::string& name) {
  json out{{"name", name}, {"addresses", json::array()}, {"interface", ""}};
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  const FoundAddresses all(list, ::freeaddrinfo);
  if (error != 0) {
    out["error"] = ::gai_strerror(error);
    return out;
  }
  for (const auto* one = all.get(); one != nullptr; one = one->ai_next)
    out["addresses"].push_back(text_of_address(one->ai_addr));
  out["interface"] = interface_towards(*all);
  return out;
}

/// `names NAME...`: what names (and this host's own, the first one) resolve to here, by getaddrinfo, which
/// can hang:
///   event "names"; names [{name, addresses [IPv4], error (text, if there are none), interface (by which a
///   packet to the first address would leave; for an own address the interface that has it), own (true: of
///   this host's name)}].
json resolve_names(Arguments names) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  json out{{"event", "names"}, {"names", json::array({resolve(host.data())})}};
  out["names"][0]["own"] = true;
  for (const auto& name : names) out["names"].push_back(resolve(name));
  return out;
}

const Registered<Question> names_question{{
    .order = 110,
    .name = "names",
    .arguments = "NAME...",
    .what = "what these names, and this host's own name, resolve to here",
    .answer = resolve_names,
}};

}  // namespace
}  // namespace nlaunch::probe
