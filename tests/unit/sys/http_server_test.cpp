#include "sys/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sys/tcp_client.h"

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

TEST(ParseListen, TakesAPortOrANumericAddressWithAPort) {
  const auto parsed = [](std::string_view text) { return text_of(*parse_listen(text)); };
  EXPECT_EQ(parsed("9400"), "127.0.0.1:9400");
  EXPECT_EQ(parsed("0"), "127.0.0.1:0");
  EXPECT_EQ(parsed("0.0.0.0:9400"), "0.0.0.0:9400");
  EXPECT_EQ(parsed("[::]:9400"), "[::]:9400");
}

TEST(ParseListen, SaysWhatIsWrong) {
  for (const std::string wrong :
       {"", "x", "65536", "-1", ":80", "n1:80", "127.0.0.1:", "[::1]", "1.2.3:80"}) {
    const auto parsed = parse_listen(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_EQ(parsed.error(),
              "'" + wrong + "' is not a port from 0 to 65535, or ADDRESS:PORT with a numeric address");
  }
}

TEST(ListenOn, GetsAFreePortAndSaysThatOneIsInUse) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto first = listen_on({address, "0"});
    if (!first && std::string_view(address) == "::1") GTEST_SKIP() << "no IPv6: " << first.error();
    ASSERT_TRUE(first.has_value()) << first.error();
    const auto got = own_endpoint(first->get());
    EXPECT_EQ(got.host, address);
    EXPECT_NE(got.port, "0");
    const auto second = listen_on(got);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error(), "Address already in use");
  }
}

class Server : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listening = listen_on({"127.0.0.1", "0"});
    ASSERT_TRUE(listening.has_value()) << listening.error();
    address_ = text_of(own_endpoint(listening->get()));
    server_ =
        std::make_unique<HttpServer>(loop_, std::move(*listening), "/metrics", [](std::string_view accept) {
          return HttpPage{"text/plain; version=0.0.4", "accept: " + std::string(accept) + "\n"};
        });
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  [[nodiscard]] TcpClient connect() const {
    auto client = TcpClient::connect(address_, std::chrono::steady_clock::now() + 8s);
    EXPECT_TRUE(client.has_value());
    return std::move(*client);
  }
  /// The whole answer, until the server closes the connection.
  [[nodiscard]] std::string answer_to(std::string_view request) const {
    auto client = connect();
    EXPECT_TRUE(client.send(request).has_value());
    return client.read_rest(1U << 20U).value_or("none");
  }

  Loop loop_;
  std::string address_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(Server, AnswersOneGetAConnection) {
  for (const char* target : {"/metrics", "/metrics?name=up"})
    EXPECT_EQ(answer_to(std::string("GET ") + target +
                        " HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
              "Content-Length: 19\r\n\r\naccept: text/plain\n");
}

TEST_F(Server, HasNoOtherPathAndNoOtherMethod) {
  EXPECT_EQ(answer_to("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            "Content-Length: 10\r\n\r\nNot Found\n");
  EXPECT_EQ(answer_to("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\nAllow: GET\r\n"
            "Connection: close\r\nContent-Length: 19\r\n\r\nMethod Not Allowed\n");
}

TEST_F(Server, RefusesWhatIsNoRequest) {
  const auto refused = [&](const std::string& request) { return answer_to(request).substr(0, 24); };
  EXPECT_EQ(refused("hello\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(refused("GET /metrics HTTP/1.1\r\nX: " + std::string(8192, 'x') + "\r\n\r\n"),
            "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(refused("GET /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"), "HTTP/1.1 400 Bad Request");
}

TEST_F(Server, ClosesASilentConnectionAndServesTheOthers) {
  auto silent = connect();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(answer_to("GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(silent.read_rest(1).value_or("not closed"), "");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 4s);
}

TEST_F(Server, OfTooManyConnectionsClosesTheOldestThatIsSilent) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<TcpClient> silent;
  for (int i = 0; i < 33; ++i) silent.push_back(connect());
  EXPECT_EQ(silent.front().read_rest(1).value_or("not closed"), "");
  EXPECT_TRUE(answer_to("GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
  EXPECT_TRUE(silent.back().send("GET /metrics HTTP/1.0\r\n\r\n").has_value());
  EXPECT_TRUE(silent.back().read_rest(1U << 20U).value_or("none").starts_with("HTTP/1.1 200 OK"));
}

TEST_F(Server, OnALoopbackAddressIsAskedUnderALoopbackName) {
  for (const char* host : {"localhost", "LOCALHOST:9400", "127.0.0.1:9400", "127.1.2.3", "[::1]", "[::1]:1"})
    EXPECT_TRUE(answer_to(std::string("GET /metrics HTTP/1.1\r\nHost: ") + host + "\r\n\r\n")
                    .starts_with("HTTP/1.1 200 OK"))
        << host;
  EXPECT_EQ(answer_to("GET /metrics HTTP/1.1\r\nHost: evil.example:9400\r\n\r\n"),
            "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
            "Content-Length: 10\r\n\r\nForbidden\n");
}

TEST(LoopbackHost, IsNoNameThatLooksLikeOne) {
  for (const char* host :
       {"", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil.example", "10.0.0.1", "::1", "[::1",
        "[::2]", "[127.0.0.1]", "[::1]x", "localhost:", "localhost:x", "localhost:1:2"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace nlaunch::sys
