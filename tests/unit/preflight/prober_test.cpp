#include "preflight/ask/prober.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

constexpr std::string_view kIdentity = R"({"event":"identity","host_id":"h","gpu":null})";
constexpr std::string_view kDone = R"({"event":"done"})";

/// Probes that do what a test says, and keep what they are told.
class PuppetProbes : public Probes {
 public:
  explicit PuppetProbes(sys::Loop& loop, std::set<std::size_t> ranks)
      : loop_(loop), running_(std::move(ranks)) {}

  void start(Tell tell) override {
    tell_ = std::move(tell);
    begin();
  }
  void say(std::size_t rank, const std::string& line) override {
    told.push_back(fmt::format("{} {}", rank, line));
    if (line.starts_with("go")) loop_.post([this, rank] { go(rank); });
  }
  void kill() override {
    ++kills;
    loop_.post([this] {
      while (!running_.empty()) end(*running_.begin(), "was killed by SIGKILL");
    });
  }

  void line(std::size_t rank, std::string_view said) { tell_({rank, probe_news::Said{std::string(said)}}); }
  void end(std::size_t rank, const std::string& how) {
    if (running_.erase(rank) > 0) tell_({rank, probe_news::Ended{how}});
  }
  void lose(std::size_t rank) {
    if (running_.erase(rank) > 0) tell_({rank, probe_news::Lost{"its agent does not answer"}});
  }
  void stick(std::size_t rank) {
    if (running_.erase(rank) > 0) tell_({rank, probe_news::Stuck{"pid 7, state D"}});
  }

  std::function<void()> begin = [] {};
  std::function<void(std::size_t rank)> go = [](std::size_t) {};
  Lines told;
  int kills = 0;

 private:
  sys::Loop& loop_;
  std::set<std::size_t> running_;
  Tell tell_;
};

/// Two ranks in one group, of two sizes.
class RunProbes : public testing::Test {
 protected:
  RunProbes() {
    groups.push_back({"node 0", plan::GroupKind::node, Backend::nccl, {0, 1}, {8, 16}, false, ""});
    probes.begin = [this] {
      for (const std::size_t rank : {0U, 1U}) probes.line(rank, kIdentity);
    };
    probes.go = [this](std::size_t rank) {
      probes.line(rank, kDone);
      probes.end(rank, "exited with code 0");
    };
  }
  ProbeOutcome run() {
    return run_probes(loop, probes,
                      {.ranks = {0, 1},
                       .of = 2,
                       .groups = groups,
                       .to_identify = to_identify,
                       .to_work = to_work,
                       .fit =
                           [this](const std::vector<RankReport>&) {
                             ++asked;
                             return fit;
                           },
                       .cancelled = cancelled,
                       .apart = apart,
                       .progress = [this](const std::string& words) { progress.push_back(words); }});
  }

  sys::Loop loop;
  PuppetProbes probes{loop, {0, 1}};
  std::vector<GroupTrial> groups;
  Duration to_identify = 10s;
  Duration to_work = 10s;
  bool fit = true;
  bool apart = false;
  int asked = 0;
  std::function<bool()> cancelled;
  Lines progress;
};

TEST_F(RunProbes, LetsThemGoOnceAllAreKnown) {
  const auto outcome = run();
  EXPECT_TRUE(outcome.went);
  EXPECT_FALSE(outcome.cancelled);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(probes.told, (Lines{"0 go 18446744073709551615", "1 go 18446744073709551615"}));
  ASSERT_EQ(outcome.reports.size(), 2U);
  for (const auto& report : outcome.reports) {
    EXPECT_TRUE(report.identity);
    EXPECT_TRUE(report.done);
    EXPECT_EQ(report.end, "");
  }
}

TEST_F(RunProbes, EndsThoseThatStayWhenAllAreDone) {
  probes.go = [this](std::size_t rank) { probes.line(rank, kDone); };
  const auto outcome = run();
  EXPECT_EQ(probes.kills, 1);
  EXPECT_EQ(outcome.reports[0].end, "");
  EXPECT_TRUE(outcome.reports[1].done);
}

TEST_F(RunProbes, DoesNotLetThemGoWhereTheyAreNotFit) {
  fit = false;
  const auto outcome = run();
  EXPECT_FALSE(outcome.went);
  EXPECT_EQ(probes.told, Lines{});
  EXPECT_EQ(probes.kills, 1);
  EXPECT_EQ(outcome.reports[0].end, "") << "it was ended";
}

TEST_F(RunProbes, WaitsForEachToSayWhoItIs) {
  probes.begin = [this] {
    probes.line(0, kIdentity);
    probes.line(0, kIdentity);
    EXPECT_EQ(asked, 0);
    probes.line(1, kIdentity);
  };
  EXPECT_TRUE(run().went);
  EXPECT_EQ(asked, 1);
}

TEST_F(RunProbes, TellsHowOneEndedThatSaidNothing) {
  probes.begin = [this] { probes.end(1, "was killed by SIGSEGV"); };
  const auto outcome = run();
  EXPECT_EQ(outcome.reports[1].end, "was killed by SIGSEGV");
  EXPECT_EQ(outcome.reports[0].end, "") << "that one was ended";
  EXPECT_EQ(probes.kills, 1);
  EXPECT_FALSE(outcome.went);
  EXPECT_EQ(asked, 0);
}

TEST_F(RunProbes, WhatAnErrorSaysIsNotSaidAgainByItsEnd) {
  probes.begin = [this] {
    probes.line(1, R"({"event":"error","phase":"identity","group":"","kind":"failed","text":"no GPU"})");
    probes.end(1, "exited with code 1");
  };
  const auto outcome = run();
  ASSERT_EQ(outcome.reports[1].errors.size(), 1U);
  EXPECT_EQ(outcome.reports[1].end, "");
}

TEST_F(RunProbes, TellsOfThoseThatAreLostAndThatStay) {
  probes.begin = [this] {
    probes.lose(0);
    probes.stick(1);
  };
  const auto outcome = run();
  EXPECT_EQ(outcome.reports[0].end, "was lost: its agent does not answer");
  EXPECT_EQ(outcome.reports[1].stuck, "pid 7, state D");
  EXPECT_EQ(outcome.reports[1].end, "");
}

TEST_F(RunProbes, HandsAnIdToTheOtherRanksOfItsGroup) {
  groups.push_back({"other", plan::GroupKind::node, Backend::nccl, {1}, {8}, false, ""});
  probes.begin = [this] {
    probes.line(0, R"({"event":"id","group":"node 0","key":"k","id":"abc"})");
    probes.line(0, R"({"event":"id","group":"none","key":"k","id":"abc"})");
    probes.line(0, R"({"event":"id","group":"other","key":"j","id":"d"})");
    probes.end(0, "");
    probes.end(1, "");
  };
  run();
  EXPECT_EQ(probes.told, (Lines{"1 id k abc", "1 id j d"}));
}

TEST_F(RunProbes, DoesNotWaitLongForAWord) {
  to_identify = 20ms;
  probes.begin = [] {};
  auto outcome = run();
  EXPECT_EQ(probes.kills, 1);
  EXPECT_FALSE(outcome.went);
  EXPECT_EQ(outcome.reports[0].end, "");
}

TEST_F(RunProbes, WaitsLongerForAWordAtWork) {
  to_identify = 1h;
  to_work = 20ms;
  probes.go = [](std::size_t) {};
  const auto outcome = run();
  EXPECT_TRUE(outcome.went);
  EXPECT_EQ(probes.kills, 1);
}

TEST_F(RunProbes, StopsWhenItIsCancelled) {
  cancelled = [] { return true; };
  probes.begin = [] {};
  const auto outcome = run();
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(probes.kills, 1);
  EXPECT_FALSE(outcome.went);
}

TEST_F(RunProbes, AsksAgainWhetherItIsCancelled) {
  int times = 0;
  cancelled = [&] { return ++times == 2; };
  probes.begin = [] {};
  EXPECT_TRUE(run().cancelled);
  EXPECT_EQ(times, 2);
}

TEST_F(RunProbes, TellsHowFarItAllIs) {
  groups.push_back({"world", plan::GroupKind::world, Backend::nccl, {0, 1}, {8}, false, ""});
  probes.go = [this](std::size_t rank) {
    const auto say = [&](std::string_view event, std::string_view rest) {
      probes.line(rank, fmt::format(R"({{"event":"{}",{}}})", event, rest));
    };
    const std::string result = R"("bytes":8,"elements":2,"wrong":0,"seconds":1,"busbw":1)";
    say("joining", R"("group":"node 0")");
    say("joined", R"("group":"node 0")");
    say("result", R"("group":"node 0",)" + result);
    say("result", R"("group":"node 0",)" + result);
    say("joining", R"("group":"world")");
    probes.line(rank, kDone);
    probes.end(rank, "");
  };
  run();
  EXPECT_EQ(progress, (Lines{"1 of 2 probes started", "2 of 2 probes started", "node 0: 2 ranks connecting",
                             "node 0: 0 of 2 sizes", "node 0: 1 of 2 sizes", "world: 2 ranks connecting",
                             "world: 2 ranks connecting"}));
}

TEST_F(RunProbes, ApartEachGroupGoesOnByItself) {
  apart = true;
  groups = {{"one", plan::GroupKind::node, Backend::nccl, {0}, {8}, false, ""},
            {"two", plan::GroupKind::node, Backend::nccl, {1}, {8}, false, ""}};
  Lines before;
  probes.begin = [&] {
    probes.line(1, kIdentity);
    before = probes.told;
    probes.line(0, kIdentity);
  };
  const auto outcome = run();
  EXPECT_EQ(before, (Lines{"1 go 18446744073709551615"}));
  EXPECT_EQ(probes.told.size(), 2U);
  EXPECT_TRUE(outcome.went);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(progress, Lines{});
}

TEST_F(RunProbes, ApartAGroupGoesOnWhenAllOfItsRanksAreKnown) {
  apart = true;
  probes.begin = [this] {
    probes.line(0, kIdentity);
    EXPECT_EQ(probes.told, Lines{});
    probes.line(1, kIdentity);
  };
  run();
  EXPECT_EQ(probes.told.size(), 2U);
}

TEST_F(RunProbes, ApartAGroupThatFailsEndsNoOther) {
  apart = true;
  groups = {{"one", plan::GroupKind::node, Backend::nccl, {0}, {8}, false, ""},
            {"two", plan::GroupKind::node, Backend::nccl, {1}, {8}, false, ""}};
  probes.begin = [this] {
    probes.end(0, "was killed by SIGSEGV");
    loop.after(50ms, [this] { probes.line(1, kIdentity); });
  };
  const auto outcome = run();
  EXPECT_TRUE(outcome.reports[1].done);
  EXPECT_EQ(outcome.reports[0].end, "was killed by SIGSEGV");
  EXPECT_EQ(probes.kills, 0);
}

RankReport with_free(std::uint64_t bytes) {
  RankReport report;
  report.identity = Identity();
  report.identity->free_bytes = bytes;
  return report;
}

TEST(RoomForMessages, IsHalfOfWhatNcclLeaves) {
  constexpr std::uint64_t kGiB = 1U << 30U;
  const std::vector<RankReport> reports{
      with_free(10 * kGiB), with_free(6 * kGiB), with_free(kGiB), with_free(0), {}};
  EXPECT_EQ(room_for_messages(reports, {0}), 4 * kGiB);
  EXPECT_EQ(room_for_messages(reports, {0, 1}), 2 * kGiB);
  EXPECT_EQ(room_for_messages(reports, {0, 1, 2}), 128U << 20U);
  EXPECT_EQ(room_for_messages(reports, {0, 3, 4}), 4 * kGiB);
  EXPECT_EQ(room_for_messages(reports, {3, 4}), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace nlaunch::preflight
