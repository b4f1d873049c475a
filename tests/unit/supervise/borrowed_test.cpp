#include <gtest/gtest.h>

#include "plan/plan.h"
#include "supervise/roster.h"
#include "supervise/state_machine.h"
#include "unit/supervise/machine.h"

// Processes on nodes that come while the run goes on, and go.
namespace nlaunch::supervise {
namespace {

/// Learner 0 waits for engine 1, which is on a node of the run's own job, and for one of the borrowed nodes
/// of 2 and 3, and of 4.
class BorrowedMachine : public Machine {
 protected:
  BorrowedMachine() {
    const ProcessRules learner{
        .process = 0, .role = "learner", .stop = {SIGTERM, 60s}, .ends_run = true, .saves = true};
    ProcessRules engine{.process = 0, .role = "engine", .ready = Ready::checked, .stop = {SIGINT, 5s}};
    engine.tolerate = 1;
    engine.gets_fresh = true;
    rules.processes = {learner, engine, engine, engine, engine};
    for (const ProcessIndex process : {2U, 3U, 4U}) rules.processes[process].borrowed = true;
    rules.borrowed = {{1, {{2, 3}, {4}}}};
    rules.stages = {{1, 2, 3, 4}, {0}};
  }
  std::string serves(ProcessIndex process) {
    on(event::Started{process});
    return on(event::Ready{process});
  }
  bool is_stale(ProcessIndex process) { return std::get<Serving>(state.processes[process].phase).stale; }
};

TEST_F(BorrowedMachine, NodesAreWantedAtOnceAndStartWhatIsThereWhenTheyCome) {
  EXPECT_EQ(start(), "recover 2+3, recover 4, start 1");
  EXPECT_EQ(on(event::NodeBack{"n7", {2, 3}}), "start 2, start 3");
  EXPECT_EQ(state.processes[2].restarts, 0U) << "it has not run before";
  EXPECT_EQ(serves(1), "");
  EXPECT_EQ(serves(2), "") << "its node is not all at work";
  EXPECT_EQ(serves(3), "start 0");
  EXPECT_FALSE(is_stale(2)) << "nobody has newer weights";
}

TEST_F(BorrowedMachine, TheFewestThatAreWantedAreWaitedForAndNoMore) {
  start();
  EXPECT_EQ(serves(1), "");
  EXPECT_EQ(on(event::NodeBack{"n7", {2, 3}}), "start 2, start 3");
  EXPECT_EQ(on(event::NodeBack{"n8", {4}}), "start 4");
  EXPECT_EQ(serves(4), "start 0") << "whichever are at work";
  rules.borrowed.front().min = 2;
  start();
  serves(1);
  on(event::NodeBack{"n8", {4}});
  EXPECT_EQ(serves(4), "");
  rules.borrowed.front().min = 0;
  start();
  EXPECT_EQ(serves(1), "start 0");
}

TEST_F(BorrowedMachine, OneThatComesLateHasTheWeightsOfItsStart) {
  rules.borrowed.front().min = 0;
  start();
  serves(1);
  on(event::Started{0});
  EXPECT_EQ(on(event::NodeBack{"n8", {4}}), "start 4");
  EXPECT_EQ(serves(4), "fresh? 4");
  EXPECT_TRUE(is_stale(4));
  EXPECT_FALSE(is_stale(1));
}

TEST_F(BorrowedMachine, ANodeThatIsTakenBackIsWantedAgain) {
  start();
  serves(1);
  on(event::NodeBack{"n8", {4}});
  serves(4);
  on(event::Started{0});
  EXPECT_EQ(on(event::NodeLost{"n8", "its job received SIGTERM", {4}}),
            "without 4 (lost n8), 1 left, recover 4");
  EXPECT_EQ(on(event::NodeBack{"n9", {4}}), "start 4");
  EXPECT_EQ(state.processes[4].restarts, 1U);
}

TEST_F(BorrowedMachine, ANodeMayGoBeforeItsTurn) {
  rules.stages = {{1}, {2, 3, 4}, {0}};
  EXPECT_EQ(start(), "recover 2+3, recover 4, start 1");
  EXPECT_EQ(on(event::NodeBack{"n8", {4}}), "") << "its stage has not begun";
  EXPECT_EQ(on(event::NodeLost{"n8", "gone", {4}}), "without 4 (lost n8), 1 left, recover 4");
  EXPECT_EQ(on(event::NodeBack{"n9", {4}}), "");
  EXPECT_EQ(serves(1), "start 4");
}

TEST_F(BorrowedMachine, WhatIsGivenUpIsNotWaitedFor) {
  start();
  serves(1);
  on(event::NodeBack{"n8", {4}});
  on(event::Started{4});
  EXPECT_EQ(ended(4, 1), "clean 4, without 4 (failed 4 exited with code 1), 1 left");
  EXPECT_EQ(on(event::NodeBack{"n7", {2, 3}}), "start 2, start 3");
  on(event::Started{2});
  EXPECT_EQ(ended(2, 1), "clean 2, without 2 (failed 2 exited with code 1), 2 left, start 0")
      << "no node is left that could be at work";
}

TEST_F(BorrowedMachine, OneMayGoBeforeEnoughHaveCome) {
  for (auto& process : rules.processes) process.tolerate.reset();
  for (const ProcessIndex engine : {2U, 3U, 4U}) rules.processes[engine].tolerate = 3;
  rules.borrowed.front().min = 2;
  start();
  serves(1);
  on(event::NodeBack{"n8", {4}});
  EXPECT_EQ(on(event::NodeLost{"n8", "gone", {4}}), "without 4 (lost n8), 1 left, recover 4");
  on(event::NodeBack{"n9", {4}});
  serves(4);
  on(event::NodeBack{"n7", {2, 3}});
  serves(2);
  EXPECT_EQ(serves(3), "start 0");
  on(event::Started{0});
  EXPECT_EQ(on(event::NodeLost{"n9", "gone", {4}}), "without 4 (lost n9), 3 left, recover 4");
  EXPECT_TRUE(on(event::NodeLost{"n7", "gone", {2, 3}}).starts_with("decide lost n7"))
      << "three have to be left";
}

TEST_F(BorrowedMachine, TheRunEndsWithWhatHasNeverCome) {
  rules.borrowed.front().min = 0;
  start();
  serves(1);
  on(event::Started{0});
  EXPECT_EQ(ended(0), "clean 0, decide finished, SIGINT to group 1, grace 1 5s");
  on(event::CleanedUp{0});
  ended(1);
  EXPECT_EQ(on(event::CleanedUp{1}), "finish finished");
  EXPECT_EQ(on(event::NodeBack{"n8", {4}}), "");
}

TEST_F(BorrowedMachine, NobodyIsToldOfTheirAddressesBeforeTheyServe) {
  plan::Plan plan;
  plan.roles.resize(2);
  plan.roles[1].name = "engine";
  plan.roles[1].count = 4;
  for (const std::uint32_t node : {0U, 0U, 1U, 1U, 2U}) {
    auto& process = plan.processes.emplace_back();
    process.role = plan.processes.size() == 1 ? 0 : 1;
    process.index = static_cast<std::uint32_t>(plan.processes.size() - 1);
    process.node = node;
    if (process.role == 1) process.ports = {8000};
  }
  for (ProcessIndex process = 0; process < rules.processes.size(); ++process)
    rules.processes[process].process = process;
  Roster roster(plan, rules, [](const plan::Process& process) {
    return fmt::format("n{}:{}", process.node, process.index);
  });
  start();
  const auto now = [&](ProcessIndex process) {
    const auto changes = roster.update(state, std::vector{process});
    return changes.empty() ? std::string()
                           : fmt::format("{} +{}", fmt::join(changes.front().addresses, " "),
                                         fmt::join(changes.front().added, " "));
  };
  EXPECT_EQ(now(4), "");
  on(event::NodeBack{"n8", {4}});
  EXPECT_EQ(now(4), "") << "it has yet to load";
  serves(4);
  EXPECT_EQ(now(4), "n0:1 n2:4 +n2:4");
}

}  // namespace
}  // namespace nlaunch::supervise
