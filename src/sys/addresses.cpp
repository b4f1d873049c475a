#include "sys/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace nlaunch::sys {

std::vector<InterfaceAddress> ipv4_addresses() {
  std::vector<InterfaceAddress> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const auto* one = all; one != nullptr; one = one->ifa_next) {
    const bool usable =
        one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP) != 0;
    if (!usable) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    out.push_back({one->ifa_name, text.data(), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(all);
  std::ranges::stable_partition(out, [](const InterfaceAddress& one) { return !one.loopback; });
  return out;
}

}  // namespace nlaunch::sys
