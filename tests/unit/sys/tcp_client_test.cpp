#include "sys/tcp_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

/// Accepts one connection, sends what it is told to, and hangs up or stays silent.
class Server {
 public:
  Server(std::string says, bool hangs_up) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, says = std::move(says), hangs_up] {
      UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      write_all(connection.get(), says);
      if (hangs_up) return;
      char byte = 0;
      while (::read(connection.get(), &byte, 1) > 0) continue;
    });
  }
  ~Server() { thread_.join(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  UniqueFd listener_;
  std::string address_;
  std::thread thread_;
};

template <class T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().first_message();
}

TEST(TcpClient, ReadsLinesAndThenTheRest) {
  const Server server("OK\nsecond\nand\nthe rest", true);
  auto client = TcpClient::connect(server.address(), TcpClient::Clock::now() + 5s);
  ASSERT_TRUE(client) << why(client);
  EXPECT_EQ(client->read_line().value_or("?"), "OK");
  EXPECT_EQ(client->read_line().value_or("?"), "second");
  EXPECT_EQ(client->read_rest(100).value_or("?"), "and\nthe rest");
}

TEST(TcpClient, DoesNotWaitPastItsDeadline) {
  const Server server("no end of a line", false);
  const auto began = TcpClient::Clock::now();
  auto client = TcpClient::connect(server.address(), began + 200ms);
  ASSERT_TRUE(client) << why(client);
  EXPECT_EQ(why(client->read_line()), server.address() + " did not answer in time");
  EXPECT_LT(TcpClient::Clock::now() - began, 5s);
}

TEST(TcpClient, SaysWhatWentWrong) {
  const auto soon = TcpClient::Clock::now() + 5s;
  EXPECT_EQ(why(TcpClient::connect("127.0.0.1:1", soon)), "127.0.0.1:1: Connection refused");
  const Server server("half", true);
  auto client = TcpClient::connect(server.address(), soon);
  ASSERT_TRUE(client) << why(client);
  EXPECT_EQ(why(client->read_line()), server.address() + " closed the connection");
}

TEST(TcpClient, TakesNoMoreThanItWants) {
  const Server server(std::string(1000, 'x'), true);
  auto client = TcpClient::connect(server.address(), TcpClient::Clock::now() + 5s);
  ASSERT_TRUE(client) << why(client);
  EXPECT_EQ(why(client->read_rest(10)), server.address() + " sent more than 10 bytes");
}

}  // namespace
}  // namespace nlaunch::sys
