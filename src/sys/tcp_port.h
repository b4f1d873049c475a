#pragma once
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sys/files.h"

namespace nlaunch::sys {

/// Whether a server could listen on this TCP port now, on all of this machine's IPv4 addresses: no error if
/// it could.
std::error_code try_to_listen(std::uint16_t port);

/// Holds the port: bound without SO_REUSEADDR, without listening. Empty if that is not possible, for example
/// after a server whose connections are in TIME_WAIT.
UniqueFd hold_port(std::uint16_t port);

/// Ports that the kernel assigns to programs that name none (ip_local_port_range), and those reserved by an
/// administrator (ip_local_reserved_ports); first and last of each range.
struct KernelPorts {
  std::pair<std::uint16_t, std::uint16_t> ephemeral{32768,
                                                    60999};  // ip-sysctl.rst of Linux 6.12: the default
  std::vector<std::pair<std::uint16_t, std::uint16_t>> reserved{};

  [[nodiscard]] bool has(std::uint16_t port) const;
};
/// From the content of the two files; what cannot be parsed keeps its default.
KernelPorts parse_kernel_ports(std::string_view range, std::string_view reserved);
/// The ports of this machine.
KernelPorts kernel_ports();

}  // namespace nlaunch::sys
