#include "sys/tcp_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "sys/files.h"

namespace nlaunch::sys {

std::error_code try_to_listen(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // as servers do: an old connection in TIME_WAIT does not matter
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool listens =
      socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(socket.get(), 1) == 0;
  return listens ? std::error_code() : std::error_code(errno, std::generic_category());
}

}  // namespace nlaunch::sys
