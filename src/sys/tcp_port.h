#pragma once
#include <cstdint>
#include <system_error>

namespace nlaunch::sys {

/// Whether a server could listen on this TCP port, on all of this machine's IPv4 addresses, now: no error
/// when it could.
std::error_code try_to_listen(std::uint16_t port);

}  // namespace nlaunch::sys
