#include "supervise/roster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

/// Three engines with a port, a replica of two engines, and a learner without any.
class RosterTest : public testing::Test {
 protected:
  RosterTest() {
    plan::Role engine, pair, learner;
    engine.name = "engine";
    engine.count = 3;
    pair.name = "pair";
    pair.count = 2;
    pair.replica = plan::Replica{1, 2};
    learner.name = "learner";
    learner.count = 1;
    plan.roles = {engine, pair, learner};
    const std::uint32_t counts[] = {3, 2, 1};
    for (std::uint32_t role = 0; role < 3; ++role) {
      for (std::uint32_t i = 0; i < counts[role]; ++i) {
        auto& process = plan.processes.emplace_back();
        process.role = role;
        process.index = i;
        if (role < 2) process.ports = {static_cast<std::uint16_t>(8000 + plan.processes.size())};
      }
    }
    state.processes.resize(6);
    for (auto& process : state.processes) process.phase = Serving{};
    begin();
  }
  void begin() {
    rules = rules_of(plan);
    roster = std::make_unique<Roster>(plan, rules, [this](const plan::Process& process) {
      ++asked;
      return fmt::format("{}:{}", host, process.ports.front());
    });
  }

  std::string update(std::vector<ProcessIndex> touched) {
    std::vector<std::string> lines;
    for (const auto& change : roster->update(state, touched)) {
      lines.push_back(fmt::format("{} {}: {} +{} -{}", plan.roles[change.role].name, change.generation,
                                  text::join(change.addresses, ","), text::join(change.added, ","),
                                  text::join(change.removed, ",")));
    }
    return text::join(lines, "; ");
  }

  plan::Plan plan;
  Rules rules;
  State state{Going{}, {}, {}};
  std::string host = "n1";
  int asked = 0;
  std::unique_ptr<Roster> roster;
};

TEST_F(RosterTest, AtTheBeginningAllAreThereAndNothingIsAsked) {
  state.processes[0].phase = Running{};
  state.processes[1].phase = Waiting{};
  state.processes[2].phase = Starting{};
  EXPECT_EQ(update({0, 1, 2, 3, 4, 5}), "");
  EXPECT_EQ(asked, 0);
}

TEST_F(RosterTest, OneThatStartsAgainIsOutUntilItServes) {
  state.processes[1].phase = BackingOff{};
  EXPECT_EQ(update({1}), "engine 2: n1:8001,n1:8003 + -n1:8002");
  state.processes[1] = {.phase = Running{}, .restarts = 1};
  EXPECT_EQ(update({1}), "");
  state.processes[1].phase = Serving{true};
  EXPECT_EQ(update({1}), "engine 3: n1:8001,n1:8002,n1:8003 +n1:8002 -")
      << "a stale one gets its weights there";
}

TEST_F(RosterTest, OnAnotherNodeItHasAnotherAddress) {
  state.processes[2].missing = ProcessState::Missing::away;
  EXPECT_EQ(update({2}), "engine 2: n1:8001,n1:8002 + -n1:8003");
  state.processes[2].missing = ProcessState::Missing::no;
  host = "n5";
  EXPECT_EQ(update({2}), "engine 3: n5:8001,n5:8002,n5:8003 +n5:8001,n5:8002,n5:8003 -n1:8001,n1:8002")
      << "whoever moved is told of, too";
}

TEST_F(RosterTest, AReplicaIsReachedByItsLeader) {
  state.processes[4].phase = CleaningUp{true};
  EXPECT_EQ(update({4}), "") << "its leader has not ended yet";
  state.processes[3].phase = CleaningUp{true};
  EXPECT_EQ(update({3}), "pair 2:  + -n1:8004");
  state.processes[3] = {.phase = Serving{}, .restarts = 1};
  EXPECT_EQ(update({4}), "pair 3: n1:8004 +n1:8004 -");
}

TEST_F(RosterTest, WhatHappensAtOnceIsOneChangeOfEachRole) {
  for (const ProcessIndex process : {0U, 1U, 3U, 5U}) state.processes[process].phase = Ended{};
  EXPECT_EQ(update({0, 1, 3, 5}), "engine 2: n1:8003 + -n1:8001,n1:8002; pair 2:  + -n1:8004");
}

TEST_F(RosterTest, OfARunThatEndsNobodyIsTold) {
  state.phase = Ending{Finished{}};
  state.processes[0].phase = Ended{};
  EXPECT_EQ(update({0}), "");
}

/// One of the three engines stands by.
class StandbyTest : public RosterTest {
 protected:
  StandbyTest() {
    plan.roles[0].standby = 1;
    for (const ProcessIndex process : {0U, 1U, 2U}) state.processes[process].phase = Running{};
    begin();
    EXPECT_EQ(update({0, 1, 2}), "");
  }
  std::string becomes(ProcessIndex process, ProcessPhase phase, unsigned restarts = 0) {
    state.processes[process].phase = phase;
    state.processes[process].restarts += restarts;
    return update({process});
  }
};

TEST_F(StandbyTest, TakesThePlaceOfOneThatFailsAtOnce) {
  for (const ProcessIndex process : {2U, 0U, 1U}) EXPECT_EQ(becomes(process, Serving{}), "");
  EXPECT_EQ(becomes(0, BackingOff{}), "engine 2: n1:8002,n1:8003 +n1:8003 -n1:8001");
  EXPECT_EQ(becomes(0, Running{}, 1), "");
  EXPECT_EQ(becomes(0, Serving{}), "") << "now it is the one that stands by";
  EXPECT_EQ(becomes(2, Ended{}), "engine 3: n1:8001,n1:8002 +n1:8001 -n1:8003");
}

TEST_F(StandbyTest, OneThatIsNotReadyYetDoesNotServe) {
  for (const ProcessIndex process : {0U, 1U}) EXPECT_EQ(becomes(process, Serving{}), "");
  EXPECT_EQ(becomes(1, BackingOff{}), "engine 2: n1:8001 + -n1:8002");
  EXPECT_EQ(becomes(2, Serving{}), "engine 3: n1:8001,n1:8003 +n1:8003 -");
  EXPECT_EQ(becomes(1, Serving{}, 1), "");
}

TEST_F(StandbyTest, OneThatStandsByMayFailUnseen) {
  for (const ProcessIndex process : {0U, 1U, 2U}) becomes(process, Serving{});
  EXPECT_EQ(becomes(2, BackingOff{}), "");
  EXPECT_EQ(becomes(0, BackingOff{}), "engine 2: n1:8002 + -n1:8001");
  EXPECT_EQ(becomes(2, Serving{}, 1), "engine 3: n1:8002,n1:8003 +n1:8003 -");
}

TEST_F(RosterTest, GoesOnFromWhatOthersWereToldBefore) {
  roster->begin_with(0, 4, {"n1:8001", "n1:8003"});
  roster->begin_with(2, 4, {"of a role without ports"});
  for (auto& process : state.processes) process.phase = Waiting{};
  EXPECT_EQ(update({0, 1, 2}), "");
  for (auto& process : state.processes) process.phase = Serving{};
  EXPECT_EQ(update({0, 1, 2}), "engine 5: n1:8001,n1:8002,n1:8003 +n1:8002 -");
  state.processes[0].phase = Ended{};
  state.processes[0].missing = ProcessState::Missing::away;
  EXPECT_EQ(update({0}), "engine 6: n1:8002,n1:8003 + -n1:8001");
}

}  // namespace
}  // namespace nlaunch::supervise
