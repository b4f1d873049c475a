#include "preflight/groups/drills.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/ask/events.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

const DrillCase& find(std::string_view name, std::string_view arm = "") {
  for (const auto& one : drill_cases()) {
    if (one.name == name && one.arm == arm) return one;
  }
  throw std::runtime_error("no such drill");
}

struct Group : Machine {
  Group() : Machine(2, 0) {}

  [[nodiscard]] GroupTrial trial(const DrillCase& which) const {
    return drill_trial(which, observations().groups.front());
  }
  /// What the ranks said, as their probes say it.
  [[nodiscard]] DrillRow judge(const DrillCase& which, const Lines& said) const {
    Measured measured;
    measured.went = true;
    measured.reports.resize(said.size());
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      const auto line = R"({"event":"drill","group":"node 0","drill":"x",)" + said[rank] + "}";
      EXPECT_TRUE(read_event(nlohmann::json::parse(line), measured.reports[rank]));
    }
    return judge_drill(which, trial(which), measured);
  }
};

constexpr const char* kWaits = R"("launched":1,"ended":"waiting","text":"","wrong":0,"seconds":10.0)";
constexpr const char* kAway = R"("launched":0,"ended":"completed","text":"","wrong":0,"seconds":0.0)";
constexpr const char* kDone = R"("launched":2,"ended":"completed","text":"","wrong":0,"seconds":0.0123)";

TEST(Drills, CrossTheOrderOnEverySecondRank) {
  const auto drill = find("order-mismatch").make(3);
  EXPECT_EQ(drill.communicators, 2);
  EXPECT_EQ(drill.does[0], (std::vector<DrillLaunch>{{0, 0, 0}, {1, 1, 1}}));
  EXPECT_EQ(drill.does[1], (std::vector<DrillLaunch>{{1, 1, 1}, {0, 0, 0}}));
  EXPECT_EQ(drill.does[2], drill.does[0]);
  EXPECT_EQ(
      find("order-mismatch", "NCCL_LAUNCH_ORDER_IMPLICIT=1").make(2).env.at("NCCL_LAUNCH_ORDER_IMPLICIT"),
      "1");
}

TEST(Drills, LeaveTheLastRankOut) {
  const auto drill = find("graph", "all but the last").make(2);
  EXPECT_TRUE(drill.captured);
  EXPECT_EQ(drill.does[0].size(), 1);
  EXPECT_TRUE(drill.does[1].empty());
}

TEST(Drills, AreInTheSpecOfTheProbes) {
  const Group machine;
  auto observations = machine.observations();
  observations.groups = {machine.trial(find("missing-rank"))};
  const auto group = make_spec(observations, "/f")["groups"][0];
  EXPECT_TRUE(group["sizes"].empty());
  EXPECT_EQ(group["drill"]["name"], "missing-rank");
  EXPECT_EQ(group["drill"]["deadline_ms"], 10000);
  EXPECT_EQ(group["drill"]["does"].dump(), R"([[{"communicator":0,"part":0,"stream":0}],[]])");
}

TEST(Drills, AHangIsToldWithItsDeadline) {
  const auto row = Group().judge(find("missing-rank"), {kWaits, kAway});
  EXPECT_EQ(row.shows, "rank 0: waited, no message; rank 1: took no part");
  EXPECT_EQ(row.end, "hangs: all ranks that took part wait, no message; ended after 10 s by its deadline");
}

TEST(Drills, ARankInsideACallIsTold) {
  const auto row =
      Group().judge(find("graph", "all but the last"),
                    {R"("launched":1,"ended":"blocked","text":"","wrong":0,"seconds":11.0)", kAway});
  EXPECT_EQ(row.shows, "rank 0: waited inside a call, no message; rank 1: took no part");
}

TEST(Drills, WhatCompletesIsToldWithItsNumbers) {
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kDone, kDone}).shows,
            "ranks 0, 1: completed, every element right");
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kDone, kDone}).end,
            "completes after 12.30 ms, every element right");
  const auto row =
      Group().judge(find("two-streams", "two orders"),
                    {kDone, R"("launched":2,"ended":"completed","text":"","wrong":9,"seconds":0.02)"});
  EXPECT_EQ(row.shows,
            "rank 0: completed, every element right; rank 1: completed, with wrong numbers, no message");
  EXPECT_EQ(row.end, "completes with wrong numbers and no message: 9 elements on rank 1");
}

TEST(Drills, AnErrorIsToldWithItsText) {
  const auto row = Group().judge(
      find("missing-rank"),
      {R"("launched":1,"ended":"failed","text":"Gloo: Timed out","wrong":0,"seconds":10.5)", kAway});
  EXPECT_EQ(row.end, "fails on all ranks that took part after 10.50 s: Gloo: Timed out");
}

TEST(Drills, WhatDidNotBeginSaysWhy) {
  const Group machine;
  auto trial = machine.trial(find("graph", "all ranks"));
  Measured measured;
  measured.rows = {passed("identity", "rank 0", "fine"), failed("identity", "rank 1", "no GPU", "", {"x"})};
  EXPECT_EQ(judge_drill(find("graph", "all ranks"), trial, measured).end, "rank 1: no GPU");
  trial.backend = Backend::gloo;
  trial = drill_trial(find("graph", "all ranks"), trial);
  EXPECT_EQ(judge_drill(find("graph", "all ranks"), trial, {}).end,
            "not run: Gloo has no streams and no CUDA graphs");
}

}  // namespace
}  // namespace nlaunch::preflight
