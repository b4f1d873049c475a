#include "supervise/liveness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

class Alive : public ::testing::Test {
 protected:
  /// What is said within the time; empty: nothing.
  std::string said_of(plan::Alive alive, Duration within = 400ms) {
    sys::SpawnRequest like;
    like.argv = alive.exec;
    like.env = {"PATH=/usr/bin:/bin"};
    std::string said;
    alive.every = 10ms;
    Liveness liveness(loop_, alive, like, [&](const std::string& reason) {
      said = reason;
      loop_.stop();
    });
    loop_.after(within, [this] { loop_.stop(); });
    loop_.run();
    return said;
  }

  static plan::Alive asks(std::vector<std::string> program, unsigned failures) {
    plan::Alive alive;
    alive.exec = std::move(program);
    alive.failures = failures;
    return alive;
  }

  sys::Loop loop_;
};

TEST_F(Alive, WhoAnswersIsNotSpokenOf) {
  EXPECT_EQ(said_of(asks({"true"}, 2)), "");
}

TEST_F(Alive, WhoDoesNotSoOftenInARowIs) {
  EXPECT_EQ(said_of(asks({"false"}, 3)), "false: exited with code 1, 3 times in a row");
  EXPECT_EQ(said_of(asks({"false"}, 1)), "false: exited with code 1");
}

TEST_F(Alive, AnAnswerInBetweenBeginsTheCountAnew) {
  const auto flag = "/tmp/nlaunch-liveness-" + std::to_string(::getpid());
  const std::string turn =
      "if [ -e " + flag + " ]; then rm " + flag + "; else touch " + flag + "; exit 1; fi";
  EXPECT_EQ(said_of(asks({"sh", "-c", turn}, 2)), "");
  ::unlink(flag.c_str());
}

TEST_F(Alive, AProgramThatHangsIsNoAnswer) {
  auto alive = asks({"sleep", "100"}, 2);
  alive.timeout = 30ms;
  EXPECT_EQ(said_of(alive), "sleep 100: did not exit within 30ms, 2 times in a row");
}

TEST_F(Alive, APortThatNobodyHas) {
  plan::Alive alive;
  alive.failures = 2;
  alive.tcp = "127.0.0.1:1";
  EXPECT_EQ(said_of(alive), "127.0.0.1:1: Connection refused, 2 times in a row");
  alive.tcp.clear();
  alive.http = "http://127.0.0.1:1/health";
  EXPECT_EQ(said_of(alive), "http://127.0.0.1:1/health: Connection refused, 2 times in a row");
}

TEST_F(Alive, TheFirstLookMayBeLater) {
  auto alive = asks({"false"}, 1);
  alive.after = 10s;
  EXPECT_EQ(said_of(alive), "");
}

}  // namespace
}  // namespace nlaunch::supervise
