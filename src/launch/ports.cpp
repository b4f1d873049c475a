#include "launch/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/files.h"

namespace nlaunch::launch {

bool port_is_free(std::uint16_t port) {
  const sys::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  const int on = 1;  // as servers do: an old connection in TIME_WAIT does not matter
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

std::optional<std::uint16_t> take_free_port(std::uint16_t wish, std::set<std::uint16_t>& taken) {
  constexpr std::uint16_t kFirst = 20000;
  constexpr std::uint16_t kLast = 31999;
  for (unsigned tries = 0; tries <= kLast - kFirst; ++tries) {
    if (!taken.contains(wish) && port_is_free(wish)) {
      taken.insert(wish);
      return wish;
    }
    wish = wish >= kLast ? kFirst : static_cast<std::uint16_t>(wish + 1);
  }
  return std::nullopt;
}

}  // namespace nlaunch::launch
