#include "supervise/readiness.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "unit/run_until.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

/// Waits for a line with "is ready".
struct Waiting {
  sys::Loop loop;
  std::shared_ptr<LineWatch> line = std::make_shared<LineWatch>("is ready");
  std::unique_ptr<Readiness> readiness;
  int ready = 0;
  int timed_out = 0;

  void ask(Duration timeout = 5s) {
    plan::Ready what;
    what.log = "is ready";
    what.timeout = timeout;
    Readiness::Then then{[this] { ++ready; }, [this] { ++timed_out; }, line};
    readiness = std::make_unique<Readiness>(loop, what, FileStamp{}, sys::SpawnRequest{}, std::move(then));
  }
};

// The agent of another node is asked a round trip after it has started the process.
TEST(Readiness, ALineFromBeforeItIsAskedForCounts) {
  Waiting waiting;
  EXPECT_FALSE(waiting.line->look_at("server starts"));
  EXPECT_TRUE(waiting.line->look_at("server is ready"));
  waiting.ask();
  EXPECT_EQ(waiting.ready, 0);  // not from within the call
  run_until(waiting.loop, [&] { return waiting.ready == 1; });
  EXPECT_EQ(waiting.timed_out, 0);
}

TEST(Readiness, ALineThatComesLaterIsWaitedFor) {
  Waiting waiting;
  waiting.ask();
  EXPECT_FALSE(waiting.line->look_at("server starts"));
  EXPECT_EQ(waiting.ready, 0);
  EXPECT_TRUE(waiting.line->look_at("server is ready"));
  EXPECT_EQ(waiting.ready, 1);
  EXPECT_TRUE(waiting.line->look_at("server is ready"));
  EXPECT_EQ(waiting.ready, 1);
}

TEST(Readiness, WithoutTheLineItTimesOut) {
  Waiting waiting;
  waiting.ask(50ms);
  run_until(waiting.loop, [&] { return waiting.timed_out == 1; });
  waiting.line->look_at("server is ready");
  EXPECT_EQ(waiting.ready, 1);
}

TEST(Readiness, NobodyIsToldOnceItIsGone) {
  Waiting waiting;
  waiting.ask();
  waiting.readiness.reset();
  EXPECT_TRUE(waiting.line->look_at("server is ready"));
  EXPECT_EQ(waiting.ready, 0);
}

/// A server on 127.0.0.1 that answers each GET by its path, and counts them.
class Server {
 public:
  /// `answers`: path → the head of the answer, without its version; "PORT" in it is the server's port.
  explicit Server(std::map<std::string, std::string> answers) : answers_(std::move(answers)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_, SOMAXCONN), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::string url(const std::string& path) const { return "http://127.0.0.1:" + port_ + path; }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  void serve() {
    for (int client = ::accept(fd_, nullptr, nullptr); client >= 0;
         client = ::accept(fd_, nullptr, nullptr)) {
      std::array<char, 4096> block{};
      const auto got = ::read(client, block.data(), block.size());
      const std::string request(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      const auto path = request.substr(4, request.find(' ', 4) - 4);
      ++asked_;
      auto head = answers_.contains(path) ? answers_[path] : "404 Not Found";
      if (const auto at = head.find("PORT"); at != std::string::npos) head.replace(at, 4, port_);
      const auto answer = "HTTP/1.1 " + head + "\r\nContent-Length: 0\r\n\r\n";
      EXPECT_EQ(::write(client, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      ::close(client);
    }
  }

  std::map<std::string, std::string> answers_;
  int fd_ = -1;
  std::string port_;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

/// Asks a server until it is ready, or for a second.
struct Asking {
  sys::Loop loop;
  std::vector<std::string> notes;
  int ready = 0;
  int timed_out = 0;
  std::string status;

  explicit Asking(const std::string& url, Duration timeout = 1s) {
    plan::Ready what;
    what.http = url;
    what.timeout = timeout;
    Readiness::Then then{[this] { ++ready; },
                         [this] { ++timed_out; },
                         {},
                         [this](const std::string& sentence) { notes.push_back(sentence); }};
    Readiness readiness(loop, what, FileStamp{}, sys::SpawnRequest{}, std::move(then));
    run_until(loop, [this] { return ready + timed_out > 0; });
    status = readiness.status();
  }
};

// FastAPI answers /health/ with 307 to /health.
TEST(Readiness, ARedirectOnTheSameHostIsFollowed) {
  Server server({{"/health/", "307 Temporary Redirect\r\nlocation: http://127.0.0.1:PORT/health"},
                 {"/old", "301 Moved Permanently\r\nX-A: b\r\nLocation:/health/"},
                 {"/health", "200 OK"}});
  for (const auto* path : {"/health/", "/old"}) {
    const Asking asking(server.url(path));
    EXPECT_EQ(asking.ready, 1) << path;
    EXPECT_EQ(asking.notes, std::vector<std::string>{}) << path;
  }
  EXPECT_EQ(server.asked(), 2 + 3);
}

TEST(Readiness, AnAnswerThatWaitingDoesNotChangeIsSaidAtOnceAndOnce) {
  Server server({{"/away", "308 Permanent Redirect\r\nLocation: http://elsewhere/health"},
                 {"/tls", "302 Found\r\nLocation: https://127.0.0.1:PORT/"},
                 {"/circle", "302 Found\r\nLocation: /circle"},
                 {"/nowhere", "301 Moved Permanently"},
                 {"/loads", "503 Service Unavailable"}});
  const auto expect = [&](const std::string& path, const std::string& said, bool noted = true) {
    const Asking asking(server.url(path), 250ms);
    EXPECT_EQ(asking.timed_out, 1);
    EXPECT_EQ(asking.status, server.url(path) + ": " + said);
    std::vector<std::string> notes;
    if (noted)
      notes.push_back("not ready: GET " + path + " " + said +
                      "; nlaunch waits for 2xx: check the path in its `ready`");
    EXPECT_EQ(asking.notes, notes);
  };
  expect("/health/", "answered 404");
  expect("/away", "answered 308 to http://elsewhere/health");
  expect("/tls", "answered 302 to https://127.0.0.1:" + server.url("").substr(17) + "/");
  expect("/circle", "answered 302 to /circle");
  expect("/nowhere", "answered 301");
  expect("/loads", "answered 503", false);
}

TEST(Readiness, PausesGrowWithTheWait) {
  Server server(std::map<std::string, std::string>{{"/", "503 Service Unavailable"}});
  const Asking asking(server.url("/"), 4s);
  EXPECT_EQ(asking.timed_out, 1);
  // Ten a second for two seconds, then every 100 to 200 ms.
  EXPECT_GT(server.asked(), 10);
  EXPECT_LT(server.asked(), 36);
}

}  // namespace
}  // namespace nlaunch::supervise
