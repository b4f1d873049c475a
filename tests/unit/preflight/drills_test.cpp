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
  EXPECT_EQ(row.shows, "rank 0: waited, no message; rank 1: did not take part");
  EXPECT_EQ(row.end, "hangs: all ranks that took part wait, no message; stopped after 10 s by its deadline");
}

TEST(Drills, ARankInsideACallIsTold) {
  const auto row =
      Group().judge(find("graph", "all but the last"),
                    {R"("launched":1,"ended":"blocked","text":"","wrong":0,"seconds":11.0)", kAway});
  EXPECT_EQ(row.shows, "rank 0: waited inside a call, no message; rank 1: did not take part");
}

TEST(Drills, WhatCompletesIsToldWithItsNumbers) {
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kDone, kDone}).shows,
            "ranks 0, 1: completed, all elements correct");
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kDone, kDone}).end,
            "completes after 12.30 ms, all elements correct");
  const auto row =
      Group().judge(find("two-streams", "two orders"),
                    {kDone, R"("launched":2,"ended":"completed","text":"","wrong":9,"seconds":0.02)"});
  EXPECT_EQ(row.shows,
            "rank 0: completed, all elements correct; rank 1: completed with wrong results, no message");
  EXPECT_EQ(row.end, "completes with wrong results and no message: 9 elements on rank 1");
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
            "not run: Gloo has no streams or CUDA graphs");
}

TEST(Drills, EachArmDoesWhatItSays) {
  EXPECT_EQ(find("missing-rank").make(3).does.size(), 3U);
  EXPECT_EQ(find("missing-rank").make(3).does[1].size(), 1U);
  EXPECT_TRUE(find("missing-rank").make(3).does[2].empty());
  EXPECT_FALSE(find("missing-rank").make(3).captured);
  EXPECT_EQ(find("missing-rank").make(3).communicators, 1U);
  EXPECT_TRUE(find("graph", "all ranks").make(2).captured);
  EXPECT_EQ(find("graph", "all ranks").make(2).does[1].size(), 1U);
  const std::vector<DrillLaunch> both{{0, 0, 0}, {0, 1, 1}};
  const std::vector<DrillLaunch> reversed{{0, 1, 1}, {0, 0, 0}};
  EXPECT_EQ(find("two-streams", "one order").make(2).does, (std::vector{both, both}));
  EXPECT_EQ(find("two-streams", "two orders").make(4).does, (std::vector{both, reversed, both, reversed}));
  EXPECT_FALSE(find("missing-rank").gpu);
  EXPECT_FALSE(find("order-mismatch").gpu);
  EXPECT_TRUE(find("two-streams", "one order").gpu);
}

TEST(Drills, TakeTheRanksOfTheTrialAndNoOtherWork) {
  const Group machine;
  auto from = machine.observations().groups.front();
  from.workloads = {{"step", {}}};
  const auto trial = drill_trial(find("missing-rank"), from, std::chrono::seconds(3));
  EXPECT_TRUE(trial.sizes.empty());
  EXPECT_TRUE(trial.workloads.empty());
  EXPECT_FALSE(trial.transport);
  EXPECT_EQ(trial.not_run, "");
  EXPECT_EQ(trial.drill->name, "missing-rank");
  EXPECT_EQ(trial.drill->deadline, std::chrono::seconds(3));
  EXPECT_EQ(trial.drill->bytes, 64U << 20U);
  EXPECT_EQ(trial.drill->does.size(), 2U);
}

TEST(Drills, WhoFailsAndWhoWaitsAreToldApart) {
  const std::string failed = R"("launched":1,"ended":"failed","text":"no route","wrong":0,"seconds":2.0)";
  EXPECT_EQ(Group().judge(find("order-mismatch"), {failed, failed}).end,
            "fails on all ranks after 2.00 s: no route");
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kWaits, failed}).end,
            "fails on rank 1 after 10.00 s: no route; rank 0 waited until the deadline");
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kWaits, kWaits}).end,
            "hangs: all ranks wait, no message; stopped after 10 s by its deadline");
  EXPECT_EQ(Group().judge(find("order-mismatch"), {kDone, kWaits}).end,
            "hangs: rank 1 wait, no message; stopped after 10 s by its deadline");
  const std::string blocked =
      R"("launched":1,"ended":"blocked","text":"a \u001b word","wrong":0,"seconds":2.0)";
  EXPECT_EQ(Group().judge(find("order-mismatch"), {blocked, kDone}).end,
            "hangs: rank 0 wait, a \\x1b word; stopped after 10 s by its deadline");
  const std::string quiet = R"("launched":1,"ended":"failed","text":"","wrong":0,"seconds":2.0)";
  EXPECT_EQ(Group().judge(find("order-mismatch"), {quiet, kDone}).shows,
            "rank 0: no message; rank 1: completed, all elements correct");
}

TEST(Drills, ARankThatDidNotSayWhatItSawIsTold) {
  const Group machine;
  const auto trial = machine.trial(find("missing-rank"));
  Measured measured;
  measured.reports.resize(1);
  measured.reports[0].groups["node 0"].drill = DrillSeen{DrillSeen::End::completed, 1, "", 0, 0.5};
  const auto row = judge_drill(find("missing-rank"), trial, measured);
  EXPECT_EQ(row.shows, "rank 0: completed, all elements correct; rank 1: did not report");
  EXPECT_EQ(row.end, "unknown: not every rank reported what it saw");
  EXPECT_EQ(row.drill, "missing-rank");
  EXPECT_EQ(row.arm, "");
  EXPECT_EQ(row.does, "the last rank does not enter an all-reduce");
}

TEST(Drills, WhyNothingBeganIsTold) {
  const Group machine;
  auto trial = machine.trial(find("missing-rank"));
  Measured measured;
  EXPECT_EQ(judge_drill(find("missing-rank"), trial, measured).end, "the ranks did not start");
  measured.rows = {warned("a", "b", "c", "d", {"e"}), unknown("identity", "rank 1", "no probe")};
  EXPECT_EQ(judge_drill(find("missing-rank"), trial, measured).end, "rank 1: no probe");
  measured.cancelled = true;
  EXPECT_EQ(judge_drill(find("missing-rank"), trial, measured).end, "cancelled");
  trial.not_run = "not run";
  EXPECT_EQ(judge_drill(find("missing-rank"), trial, measured).end, "not run");
}

TEST(Drills, AreWrittenForPrograms) {
  EXPECT_EQ(to_json(std::vector<DrillRow>{{"missing-rank", "arm", "does", "shows", "end"}}).dump(),
            R"([{"arm":"arm","does":"does","drill":"missing-rank","end":"end","shows":"shows"}])");
}

}  // namespace
}  // namespace nlaunch::preflight
