#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sys/proc.h"

/// Whose the socket is on which somebody listens, as /proc/net/tcp and the descriptors of processes say.
namespace nlaunch::sys {

struct PortOwner {
  enum class Of {
    own,      ///< of one of the processes that were named
    other,    ///< of none of them
    unknown,  ///< no such socket is seen (gVisor, another network namespace), or a process's descriptors are
              ///< not
  };
  Of of = Of::unknown;
  std::string name{};  ///< of `other`, where it can be seen: "python3 (pid 4711)"
};

/// `address` as inet_ntop(3) writes it, of this process's network namespace: the one to which a connection
/// was made.
PortOwner port_owner(const std::string& address, std::uint16_t port, const std::vector<pid_t>& own);

}  // namespace nlaunch::sys
