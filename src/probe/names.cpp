#include "probe/names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "sys/addresses.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

std::string address_text(const sockaddr* address) {
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
  const auto address = address_text(reinterpret_cast<const sockaddr*>(&source));
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
  const Found all(list, ::freeaddrinfo);
  if (error != 0) {
    out["error"] = ::gai_strerror(error);
    return out;
  }
  for (const auto* one = all.get(); one != nullptr; one = one->ai_next)
    out["addresses"].push_back(address_text(one->ai_addr));
  out["interface"] = interface_towards(*all);
  return out;
}

}  // namespace

json resolve_names(std::span<const std::string> names) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  json out{{"event", "names"}, {"names", json::array({resolve(host.data())})}};
  out["names"][0]["own"] = true;
  for (const auto& name : names) out["names"].push_back(resolve(name));
  return out;
}

}  // namespace nlaunch::probe
