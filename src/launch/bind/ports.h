#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sys/files.h"
#include "sys/tcp_port.h"

namespace nlaunch::launch {

/// Where this user's runs record which ports they hold. A file for all users could be locked completely by
/// any of them.
std::string port_folder();

/// The range in which nlaunch claims ports on a machine: 20000 to 31999 as in a plan, unless the kernel gives
/// some of them to programs that name no port. Then it is the range below the kernel's, from 2000 up, or else
/// the range above.
struct PortRange {
  std::uint16_t first = 20000;
  std::uint16_t last = 31999;
};
PortRange range_beside(const sys::KernelPorts& kernel);

/// The ports of one run: free when claimed, and kept from other runs during the lifetime of this object.
/// Between binding a run and the moment its servers listen, another program would find the same ports free:
/// they are held until `release`, and other runs of this user avoid them after that, too.
class Ports {
 public:
  explicit Ports(const std::string& folder = port_folder(), sys::KernelPorts kernel = sys::kernel_ports());

  /// The first free port from `wish` upwards; after the end of the range it continues at the start. A port
  /// that the kernel may assign, or that is reserved, is used only if there is no other.
  std::optional<std::uint16_t> take(std::uint16_t wish);
  /// Lets the run's own programs listen on them.
  void release() {
    for (auto& [port, held] : taken_) held = {};
  }
  [[nodiscard]] const PortRange& range() const { return range_; }

 private:
  bool lock(std::uint16_t port);

  sys::KernelPorts kernel_;
  PortRange range_;
  std::map<std::uint16_t, sys::UniqueFd> taken_;  // each with the socket that holds it
  sys::UniqueFd
      file_;  // byte N is locked for port N; without a directory owned by this user nothing is locked
};

}  // namespace nlaunch::launch
