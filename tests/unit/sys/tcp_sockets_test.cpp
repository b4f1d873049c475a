#include "sys/tcp_sockets.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "sys/files.h"
#include "sys/proc.h"

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

TEST(PortHolder, IsNamedWithItsUserAndWhatFreesThePort) {
  const Listening socket("127.0.0.2");
  auto holder = port_holder(listening_sockets(), "", socket.port);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->pid, ::getpid());
  EXPECT_EQ(holder->user, ::geteuid());
  EXPECT_TRUE(holder->str().ends_with(fmt::format("(pid {}, uid {})", ::getpid(), ::geteuid())))
      << holder->str();
  holder->user_name = "alice";
  EXPECT_TRUE(holder->str().ends_with(fmt::format("(pid {}, user alice)", ::getpid()))) << holder->str();
  EXPECT_EQ(holder->how_to_free(), fmt::format("stop it with `kill {}`", ::getpid()));
  EXPECT_FALSE(port_holder(listening_sockets(), "", 1));
}

TEST(PortHolder, OfAnotherAddressIsNotMeant) {
  const Listening socket("127.0.0.2");
  const auto listening = listening_sockets();
  EXPECT_FALSE(port_holder(listening, "127.0.0.1", socket.port));
  EXPECT_TRUE(port_holder(listening, "127.0.0.2", socket.port));
  const Listening all("0.0.0.0");
  EXPECT_TRUE(port_holder(listening_sockets(), "127.0.0.1", all.port));
  EXPECT_FALSE(port_holder(listening, "127.0.0.1", all.port)) << "it was not there then";
}

/// A child that has the socket, too.
struct Child {
  Child() : pid(::fork()) {
    if (pid == 0)
      for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  pid_t pid;
};

TEST(PortHolder, IsOneOfThoseThatAreAskedFirst) {
  const Listening socket("127.0.0.1");
  const Child child;
  for (const auto pid : {child.pid, ::getpid()}) {
    const auto holder = port_holder(listening_sockets(), "127.0.0.1", socket.port, {pid});
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->pid, pid);
  }
}

TEST(PortHolder, ThatIsHiddenIsUnknownWhereOneOfThemHidesItsFiles) {
  // A socket that no process has open.
  const std::vector<TcpSocket> listening{
      {.inode = "none", .local = {"0.0.0.0", 8000}, .state = kTcpListen, .user = ::geteuid()}};
  const auto hidden = port_holder(listening, "127.0.0.1", 8000, {::getpid()});
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->pid, 0);
  if (::access("/proc/1/fd", R_OK | X_OK) == 0) GTEST_SKIP() << "nothing is hidden from this user";
  EXPECT_FALSE(port_holder(listening, "127.0.0.1", 8000, {::getpid(), 1}));
}

TEST(PortHolder, OfARunIsStoppedWithTheRun) {
  const PortHolder holder{.pid = 4711,
                          .program = "server.py",
                          .user = ::geteuid(),
                          .user_name = "alice",
                          .run = "20260131-120000-17",
                          .run_dir = "/my runs/a"};
  EXPECT_EQ(holder.str(), "server.py (pid 4711, user alice) of run 20260131-120000-17");
  EXPECT_EQ(holder.how_to_free(), "stop that run with `nlaunch stop '/my runs/a'`");
}

TEST(PortHolder, OfAnotherUserIsAskedFor) {
  PortHolder hidden{.user = ::geteuid() + 1, .user_name = "bob"};
  EXPECT_EQ(hidden.str(), "a process of user bob");
  EXPECT_EQ(hidden.how_to_free(), "ask user bob to stop it");
  hidden.user_name = "";
  EXPECT_EQ(hidden.str(), fmt::format("a process of uid {}", hidden.user));
  EXPECT_EQ(hidden.how_to_free(), fmt::format("ask the user with uid {} to stop it", hidden.user));
}

TEST(ListeningEnds, AreThoseOfTheProcessesByPort) {
  const Listening one("127.0.0.2");
  const Listening all("0.0.0.0");
  const auto ends = listening_ends({::getpid()});
  const auto has = [&](const std::string& address, std::uint16_t port) {
    return std::ranges::any_of(ends,
                               [&](const auto& end) { return end.address == address && end.port == port; });
  };
  EXPECT_TRUE(has("127.0.0.2", one.port));
  EXPECT_TRUE(has("0.0.0.0", all.port));
  EXPECT_TRUE(std::ranges::is_sorted(ends, {}, &TcpSocket::End::port));
  EXPECT_TRUE(listening_ends({}).empty());
}

}  // namespace
}  // namespace nlaunch::sys
