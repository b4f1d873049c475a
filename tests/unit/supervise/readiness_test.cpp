#include "supervise/readiness.h"

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

}  // namespace
}  // namespace nlaunch::supervise
