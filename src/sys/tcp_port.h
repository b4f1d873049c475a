#pragma once
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sys/files.h"

namespace nlaunch::sys {

/// Whether a server could listen on this TCP port, on all of this machine's IPv4 addresses, now: no error
/// when it could.
std::error_code try_to_listen(std::uint16_t port);

/// The port, kept from all others: bound without SO_REUSEADDR, and nobody listens. Nothing where it cannot be
/// had so, as after a server whose connections are in TIME_WAIT.
UniqueFd hold_port(std::uint16_t port);

/// Ports that the kernel gives to programs that name none (ip_local_port_range), and those that an
/// administrator keeps for somebody (ip_local_reserved_ports), first and last of each row.
struct KernelPorts {
  std::pair<std::uint16_t, std::uint16_t> ephemeral{32768,
                                                    60999};  // ip-sysctl.rst of Linux 6.12: the default
  std::vector<std::pair<std::uint16_t, std::uint16_t>> reserved{};

  [[nodiscard]] bool has(std::uint16_t port) const;
};
/// Of the two files' texts; what cannot be read is as the default has it.
KernelPorts parse_kernel_ports(std::string_view range, std::string_view reserved);
/// Of this machine.
KernelPorts kernel_ports();

}  // namespace nlaunch::sys
