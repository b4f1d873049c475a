#include "supervise/readiness.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "supervise/not_ready_search.h"
#include "sys/files.h"
#include "sys/tcp_sockets.h"
#include "unit/run_until.h"
#include "unit/supervise/folder.h"

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
  EXPECT_EQ(waiting.ready, 0) << "it is too late";
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

TEST(Readiness, PausesAreOfATenthOfASecondAtFirst) {
  Server server(std::map<std::string, std::string>{{"/", "503 Service Unavailable"}});
  const Asking asking(server.url("/"), 250ms);
  EXPECT_EQ(asking.timed_out, 1);
  EXPECT_GE(server.asked(), 2);
  EXPECT_LE(server.asked(), 3);
}

/// Waits for what a plan says, on a loop of its own.
struct Case {
  sys::Loop loop;
  plan::Ready what;
  Readiness::Then then;
  sys::SpawnRequest program;
  FileStamp before;
  std::vector<std::string> notes;
  int ready = 0;
  int timed_out = 0;
  std::unique_ptr<Readiness> readiness;

  Case() {
    what.timeout = 5s;
    then.ready = [this] { ++ready; };
    then.timed_out = [this] { ++timed_out; };
    then.note = [this](const std::string& sentence) { notes.push_back(sentence); };
  }
  void ask() { readiness = std::make_unique<Readiness>(loop, what, before, program, then); }
  void wait() {
    run_until(loop, [this] { return ready + timed_out > 0; });
    EXPECT_LE(ready + timed_out, 1);
  }
  void let_pass(Duration time) {
    loop.after(time, [this] { loop.stop(); });
    loop.run();
  }
};

class File : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path()) << text; }
  [[nodiscard]] std::string path() const { return (folder / "ready").string(); }

  Folder made;
  std::filesystem::path folder = made.path();
};

TEST_F(File, AStampIsTheSameUntilTheFileIsAnother) {
  EXPECT_FALSE(stamp_of(path()));
  write("one");
  const auto first = stamp_of(path());
  ASSERT_TRUE(first);
  EXPECT_EQ(stamp_of(path()), first);
  EXPECT_NE(stamp_of(folder.string()), first);
  // The clock of a file system may stand for some milliseconds.
  for (int i = 0; i < 500 && stamp_of(path()) == first; ++i) {
    ::usleep(2000);
    write("two");
  }
  EXPECT_NE(stamp_of(path()), first);
}

TEST_F(File, IsWaitedFor) {
  Case one;
  one.what.file = path();
  one.ask();
  EXPECT_EQ(one.readiness->status(), "file '" + path() + "': does not exist");
  one.let_pass(20ms);
  EXPECT_EQ(one.ready, 0);
  write("");
  one.wait();
  EXPECT_EQ(one.ready, 1);
  EXPECT_EQ(one.notes, std::vector<std::string>{});
}

TEST_F(File, OfBeforeTheStartDoesNotCount) {
  write("");
  Case one;
  one.what.file = path();
  one.before = stamp_of(path());
  one.ask();
  EXPECT_EQ(one.readiness->status(), "file '" + path() + "': has not changed since the process started");
  one.let_pass(20ms);
  EXPECT_EQ(one.ready, 0);
  std::filesystem::rename(path(), folder / "old");
  write("");
  one.wait();
  EXPECT_EQ(one.ready, 1);
}

TEST_F(File, ThatNeverComesTimesOut) {
  Case one;
  one.what.file = path();
  one.what.timeout = 20ms;
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  write("");
  one.let_pass(150ms);
  EXPECT_EQ(one.ready, 0) << "it looks no more";
}

TEST(Readiness, ADelayIsWaitedForAndHasNoTimeout) {
  Case one;
  one.what.delay = 50ms;
  one.what.timeout = 1ms;
  one.ask();
  EXPECT_EQ(one.readiness->status(), "its delay: no answer yet");
  one.let_pass(10ms);
  EXPECT_EQ(one.ready, 0);
  one.wait();
  EXPECT_EQ(one.ready, 1);
}

TEST(Readiness, NobodyIsToldOfADelayOnceItIsGone) {
  Case one;
  one.what.delay = 10ms;
  one.ask();
  one.readiness.reset();
  one.let_pass(30ms);
  EXPECT_EQ(one.ready + one.timed_out, 0);
}

TEST(Readiness, OfALineTheStatusSaysThatNoneCame) {
  Case one;
  one.what.log = "is ready";
  one.then.line = std::make_shared<LineWatch>("is ready");
  one.ask();
  EXPECT_EQ(one.readiness->status(), "a line of its output that matches 'is ready': no such line yet");
}

TEST(Readiness, AProgramIsAskedUntilItEndsWithZero) {
  Case one;
  one.what.exec = {"/bin/sh", "-c", "exit 0"};
  one.program.argv = {"/bin/sh", "-c", "exit 0"};
  one.ask();
  EXPECT_EQ(one.readiness->status(), "/bin/sh -c exit 0: it has not exited yet");
  one.wait();
  EXPECT_EQ(one.ready, 1);
}

TEST(Readiness, WhatAProgramSaysIsTheStatus) {
  Case one;
  one.what.exec = {"check", std::string(100, 'x'), "\n"};
  one.program.argv = {"/bin/sh", "-c", "echo 2 of 4 GPUs; exit 3"};
  one.what.timeout = 300ms;
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  EXPECT_EQ(one.readiness->status(), "check " + std::string(74, 'x') + ": exited with code 3: 2 of 4 GPUs");
  Case running;
  running.what.exec = {"check"};
  running.program.argv = {"/bin/sh", "-c", "echo loading; sleep 60"};
  running.ask();
  run_until(running.loop, [&] { return running.readiness->status() == "check: loading"; });
}

TEST(Readiness, AProgramIsAskedTwiceASecond) {
  const Folder folder;
  const auto log = folder.path() / "asked";
  Case one;
  one.what.exec = {"check"};
  one.program.argv = {"/bin/sh", "-c", "echo asked >> " + log.string() + "; exit 1"};
  one.what.timeout = 700ms;
  one.ask();
  one.wait();
  EXPECT_EQ(std::filesystem::file_size(log), 2 * std::string("asked\n").size());
}

/// Somebody who listens on a port of 127.0.0.1, here.
struct Listener {
  sys::UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port = 0;

  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd.get(), SOMAXCONN), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  [[nodiscard]] std::string endpoint() const { return "127.0.0.1:" + std::to_string(port); }
};

TEST(Readiness, APortThatTakesAConnectionIsEnough) {
  const Listener listener;
  Case one;
  one.what.tcp = listener.endpoint();
  one.ask();
  EXPECT_EQ(one.readiness->status(), listener.endpoint() + ": no answer yet");
  one.wait();
  EXPECT_EQ(one.ready, 1);
  EXPECT_EQ(one.notes, std::vector<std::string>{});
}

TEST(Readiness, AnAnswerAfterTheTimeoutDoesNotCount) {
  const Listener listener;
  Case one;
  one.what.http = "http://" + listener.endpoint() + "/health";
  one.what.timeout = 50ms;
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  const sys::UniqueFd asked(::accept(listener.fd.get(), nullptr, nullptr));
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  ASSERT_EQ(::write(asked.get(), kAnswer.data(), kAnswer.size()), std::ssize(kAnswer));
  one.let_pass(150ms);
  EXPECT_EQ(one.ready, 0);
  EXPECT_EQ(one.timed_out, 1);
}

TEST(Readiness, AProgramThatEndsAfterTheTimeoutDoesNotCountAndIsTheLast) {
  for (const int code : {0, 1}) {
    const Folder folder;
    const auto log = folder.path() / "asked";
    Case one;
    one.what.exec = {"check"};
    one.program.argv = {"/bin/sh", "-c",
                        fmt::format("echo asked >> {}; sleep 0.3; exit {}", log.string(), code)};
    one.what.timeout = 100ms;
    one.ask();
    one.wait();
    one.let_pass(1s);
    EXPECT_EQ(one.ready, 0) << code;
    EXPECT_EQ(one.timed_out, 1) << code;
    EXPECT_EQ(std::filesystem::file_size(log), std::string("asked\n").size()) << code;
  }
}

TEST(Readiness, KnowsTheAddressOfThisMachineThatItReached) {
  std::string endpoint;
  {
    const Listener listener;
    endpoint = listener.endpoint();
    Case one;
    one.what.tcp = "localhost:" + std::to_string(listener.port);
    one.ask();
    EXPECT_FALSE(one.readiness->peer());
    one.wait();
    ASSERT_TRUE(one.readiness->peer());
    EXPECT_EQ(one.readiness->peer()->address, "127.0.0.1");
    EXPECT_EQ(one.readiness->peer()->port, listener.port);
    Case hangs;
    hangs.what.http = "http://" + endpoint + "/health";
    hangs.what.timeout = 50ms;
    hangs.ask();
    hangs.wait();
    ASSERT_TRUE(hangs.readiness->peer()) << "it accepts the connection, and does not answer";
  }
  Case refused;
  refused.what.tcp = endpoint;
  refused.what.timeout = 50ms;
  refused.ask();
  refused.wait();
  EXPECT_FALSE(refused.readiness->peer());
}

TEST(Readiness, APortOfNobodyIsAskedAgain) {
  std::string endpoint;
  {
    const Listener listener;
    endpoint = listener.endpoint();
  }
  Case one;
  one.what.tcp = endpoint;
  one.what.timeout = 150ms;
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  EXPECT_EQ(one.readiness->status(), endpoint + ": Connection refused");
}

class Owned : public testing::Test {
 protected:
  void SetUp() override {
    const auto owner = sys::port_owner("127.0.0.1", listener.port, {}).of;
    if (owner != sys::PortOwner::Of::other) GTEST_SKIP() << "who listens cannot be seen here";
    one.what.tcp = listener.endpoint();
    one.then.own = [this] { return own; };
  }

  Listener listener;
  std::vector<pid_t> own;
  Case one;
};

TEST_F(Owned, ByTheRunItCounts) {
  own = {::getpid()};
  one.ask();
  one.wait();
  EXPECT_EQ(one.ready, 1);
  EXPECT_EQ(one.notes, std::vector<std::string>{});
}

TEST_F(Owned, ByAStrangerItDoesNotAndThatIsSaidOnce) {
  one.what.timeout = 250ms;
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  const auto who = sys::port_owner("127.0.0.1", listener.port, {}).name;
  EXPECT_FALSE(who.empty());
  EXPECT_EQ(one.notes, std::vector<std::string>{"not ready: port " + std::to_string(listener.port) +
                                                " is held by " + who + ", which this run did not start"});
  EXPECT_EQ(one.readiness->status(),
            listener.endpoint() + ": answered by " + who + ", which this run did not start");
}

TEST_F(Owned, ByAStrangerItCountsWhereTheServerIsStartedElsewhere) {
  one.then.elsewhere = true;
  one.ask();
  one.wait();
  EXPECT_EQ(one.ready, 1);
  EXPECT_EQ(one.notes, std::vector<std::string>{
                           "not verified: nlaunch cannot see from here which process listens on port " +
                           std::to_string(listener.port)});
}

TEST_F(Owned, WithoutANoteNobodyIsTold) {
  one.then.elsewhere = true;
  one.then.note = nullptr;
  one.ask();
  one.wait();
  EXPECT_EQ(one.ready, 1);
}

TEST(Readiness, AStrangersAnswerIsNotTakenForAWrongPath) {
  Server server(std::map<std::string, std::string>{{"/health", "200 OK"}});
  const auto url = server.url("/missing");
  const auto port = static_cast<std::uint16_t>(std::stoi(url.substr(17)));
  if (sys::port_owner("127.0.0.1", port, {}).of != sys::PortOwner::Of::other)
    GTEST_SKIP() << "who listens cannot be seen here";
  Case one;
  one.what.http = url;
  one.what.timeout = 50ms;
  one.then.own = [] { return std::vector<pid_t>{}; };
  one.ask();
  one.wait();
  EXPECT_EQ(one.timed_out, 1);
  ASSERT_EQ(one.notes.size(), 1U);
  EXPECT_TRUE(one.notes.front().starts_with("not ready: port ")) << one.notes.front();
}

TEST(Readiness, AnswersFromThreeToFiveHundredStay) {
  Server server({{"/300", "300 Multiple Choices"},
                 {"/499", "499 Client Closed Request"},
                 {"/500", "500 Internal Server Error"},
                 {"/199", "199 Strange"}});
  const std::pair<const char*, std::size_t> kCases[] = {{"/300", 1}, {"/499", 1}, {"/500", 0}, {"/199", 0}};
  for (const auto& [path, notes] : kCases) {
    const Asking asking(server.url(path), 50ms);
    EXPECT_EQ(asking.timed_out, 1) << path;
    EXPECT_EQ(asking.notes.size(), notes) << path;
  }
}

TEST(ProblemWith, SaysWhatCannotBeRead) {
  const auto of = [](auto change) {
    plan::Ready ready;
    change(ready);
    return problem_with(ready);
  };
  EXPECT_EQ(of([](plan::Ready&) {}), "");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.http = "http://n1:8000/health"; }), "");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.tcp = "n1:8000"; }), "");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.log = "is (ready|up)"; }), "");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.http = "https://n1"; }),
            "'https://n1' does not start with http:// (https is not supported)");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.tcp = "n1"; }),
            "'n1' is not HOST:PORT with a port from 1 to 65535");
  EXPECT_EQ(of([](plan::Ready& ready) { ready.log = "is (ready"; }),
            "'is (ready' is not a regular expression: missing ): is (ready");
}

NotReadySeen search(const plan::Ready& ready, NotReadySeen seen, const std::vector<pid_t>& tree) {
  sys::Loop loop;
  std::optional<NotReadySeen> found;
  const NotReadySearch one(loop, ready, tree, std::move(seen),
                           [&](NotReadySeen what) { found = std::move(what); });
  EXPECT_FALSE(found) << "not from within the call";
  run_until(loop, [&] { return found.has_value(); });
  return found.value_or(NotReadySeen());
}

TEST(NotReadySearch, FindsAnotherPathOnTheSamePort) {
  const Server server(std::map<std::string, std::string>{{"/health", "200 OK"}});
  plan::Ready ready;
  ready.http = server.url("/healthz");
  const auto seen = search(ready, {.last = "answered 404"}, {::getpid()});
  EXPECT_EQ(seen.answers, server.url("/health"));
  EXPECT_EQ(seen.last, "answered 404");
}

TEST(NotReadySearch, FindsAnotherPortOfTheProcess) {
  const Server server(std::map<std::string, std::string>{{"/health", "200 OK"}});
  plan::Ready ready;
  ready.http = "http://127.0.0.1:1/health";
  EXPECT_EQ(search(ready, {.last = "Connection refused"}, {::getpid()}).answers, server.url("/health"));
  const auto of_nobody = search(ready, {.last = "Connection refused"}, {});
  EXPECT_EQ(of_nobody.answers, "");
  EXPECT_TRUE(of_nobody.listens.empty());
}

TEST(NotReadySearch, NamesWhereAProcessListens) {
  const Server server(std::map<std::string, std::string>{});
  plan::Ready ready;
  ready.tcp = "127.0.0.1:1";
  const auto seen = search(ready, {}, {::getpid()});
  EXPECT_EQ(seen.answers, "");
  const auto end = server.url("").substr(std::string_view("http://").size());
  EXPECT_NE(std::ranges::find(seen.listens, end), seen.listens.end());
  EXPECT_EQ(server.asked(), 0) << "nothing is asked of a server that is not checked over HTTP";
}

TEST(NotReadySearch, CallsNothingOnceItIsGone) {
  sys::Loop loop;
  bool called = false;
  std::optional<NotReadySearch> one;
  one.emplace(loop, plan::Ready(), std::vector<pid_t>(), NotReadySeen(), [&](const auto&) { called = true; });
  one.reset();
  loop.after(50ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(called);
}

TEST(IsThisMachine, KnowsItsNamesAndAddresses) {
  for (const auto* host : {"localhost", "127.0.0.1", "127.0.1.1", "::1"})
    EXPECT_TRUE(is_this_machine(host)) << host;
  for (const auto* host : {"192.0.2.1", "elsewhere", ""}) EXPECT_FALSE(is_this_machine(host)) << host;
}

}  // namespace
}  // namespace nlaunch::supervise
