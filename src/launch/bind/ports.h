#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sys/files.h"
#include "sys/tcp_port.h"

namespace nlaunch::launch {

/// Where the runs of this user tell each other which ports they hold. One file for all users could be locked
/// from end to end by any of them.
std::string port_folder();

/// Where nlaunch takes ports on a machine: those of a plan, 20000 to 31999, unless the kernel gives some of
/// them to programs that name none. Then it is the room below the kernel's, from 2000 up, or else above.
struct PortRange {
  std::uint16_t first = 20000;
  std::uint16_t last = 31999;
};
PortRange range_beside(const sys::KernelPorts& kernel);

/// The ports of one run: free when taken, and kept from other runs while this lives. Between the binding of a
/// run and the moment when its servers listen, another program would find the same ports free: they are held
/// until `let_go`, and other runs of this user leave them alone after that, too.
class Ports {
 public:
  explicit Ports(const std::string& folder = port_folder(), sys::KernelPorts kernel = sys::kernel_ports());

  /// The first port from `wish` upwards that nobody has; after the last of the range, its first. One that the
  /// kernel may give away, or that is reserved, is taken only where there is no other.
  std::optional<std::uint16_t> take(std::uint16_t wish);
  /// The run's own programs may listen on them from now on.
  void let_go() {
    for (auto& [port, held] : taken_) held = {};
  }
  [[nodiscard]] const PortRange& range() const { return range_; }

 private:
  bool lock(std::uint16_t port);

  sys::KernelPorts kernel_;
  PortRange range_;
  std::map<std::uint16_t, sys::UniqueFd> taken_;  // each with the socket that holds it
  sys::UniqueFd file_;  // byte N is locked for port N; without a folder of this user's own nothing is kept
};

}  // namespace nlaunch::launch
