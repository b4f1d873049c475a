#include "sys/tcp_sockets.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

/// A socket that listens on a free port of an address.
struct Listening {
  explicit Listening(const std::string& address) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
  }
  UniqueFd fd;
  std::uint16_t port = 0;
};

TEST(PortOwner, IsOwnOfTheProcessThatHasTheSocket) {
  for (const auto* address : {"127.0.0.1", "0.0.0.0"}) {
    const Listening socket(address);
    EXPECT_EQ(port_owner("127.0.0.1", socket.port, {::getpid()}).of, PortOwner::Of::own) << address;
  }
}

TEST(PortOwner, IsAnotherWhereNoneOfThemHasIt) {
  const Listening socket("127.0.0.1");
  const auto found = port_owner("127.0.0.1", socket.port, {});
  EXPECT_EQ(found.of, PortOwner::Of::other);
  EXPECT_TRUE(found.name.ends_with(fmt::format("(pid {})", ::getpid()))) << found.name;
}

TEST(PortOwner, OfAnotherAddressIsNotMeant) {
  const Listening socket("127.0.0.2");
  EXPECT_EQ(port_owner("127.0.0.1", socket.port, {::getpid()}).of, PortOwner::Of::unknown);
  EXPECT_EQ(port_owner("127.0.0.2", socket.port, {::getpid()}).of, PortOwner::Of::own);
}

TEST(PortOwner, IsUnknownWhereNobodyIsSeenToListen) {
  EXPECT_EQ(port_owner("127.0.0.1", 1, {::getpid()}).of, PortOwner::Of::unknown);
  EXPECT_EQ(port_owner("no address", 1, {::getpid()}).of, PortOwner::Of::unknown);
}

}  // namespace
}  // namespace nlaunch::sys
