#pragma once
#include <string>
#include <vector>

namespace nlaunch::sys {

struct InterfaceAddress {
  std::string interface;  ///< "hsn0"
  std::string address;    ///< IPv4
  bool loopback = false;
};
/// The IPv4 addresses of this machine's interfaces that are up, loopback last.
std::vector<InterfaceAddress> ipv4_addresses();

}  // namespace nlaunch::sys
