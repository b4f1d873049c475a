#include "sys/tcp_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace nlaunch::sys {
namespace {

/// Empty if it is not available, with the reason in errno.
UniqueFd bound_to(std::uint16_t port, bool reuse) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse ? 1 : 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool bound = socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                     ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return bound ? std::move(socket) : UniqueFd();
}

}  // namespace

std::error_code try_to_listen(std::uint16_t port) {
  const auto socket = bound_to(port, true);  // like servers: an old connection in TIME_WAIT does not matter
  const bool listens = socket && ::listen(socket.get(), 1) == 0;
  return listens ? std::error_code() : std::error_code(errno, std::generic_category());
}

UniqueFd hold_port(std::uint16_t port) {
  return bound_to(port, false);
}

bool KernelPorts::has(std::uint16_t port) const {
  const auto within = [&](const auto& row) { return row.first <= port && port <= row.second; };
  return within(ephemeral) || std::ranges::any_of(reserved, within);
}

KernelPorts parse_kernel_ports(std::string_view range, std::string_view reserved) {
  KernelPorts ports;
  std::string both(text::trim(range));
  std::ranges::replace(both, '\t', ' ');
  const auto first = text::whole_number<std::uint16_t>(both.substr(0, both.find(' ')));
  const auto last = text::whole_number<std::uint16_t>(both.substr(both.rfind(' ') + 1));
  if (first && last && *first <= *last) ports.ephemeral = {*first, *last};
  for (const auto& row : text::split(text::trim(reserved), ',')) {
    const auto dash = row.find('-');
    const auto from = text::whole_number<std::uint16_t>(row.substr(0, dash));
    const auto to =
        dash == std::string::npos ? from : text::whole_number<std::uint16_t>(row.substr(dash + 1));
    if (from && to) ports.reserved.emplace_back(*from, *to);
  }
  return ports;
}

KernelPorts kernel_ports() {
  const auto read = [](const char* name) {
    std::ifstream file(std::string("/proc/sys/net/ipv4/") + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return parse_kernel_ports(read("ip_local_port_range"), read("ip_local_reserved_ports"));
}

}  // namespace nlaunch::sys
