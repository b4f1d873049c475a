#include <gtest/gtest.h>

#include <csignal>

#include "supervise/state_machine.h"
#include "unit/supervise/machine.h"

// What starts again, and what a run goes on without.
namespace nlaunch::supervise {
namespace {

/// Engines 2 and 3 are one replica, whose leader is 2.
class ReplicaMachine : public Machine {
 protected:
  ReplicaMachine() {
    rules.replicas = {{2, 3}};
    for (const ProcessIndex engine : {2U, 3U}) {
      rules.processes[engine].replica = 0;
      rules.processes[engine].restart = {true, 1, 2s};
    }
    rules.processes[3].ready = Ready::started;
    start();
    on(event::Started{2});
    on(event::Started{3});
    on(event::Ready{2});
    for (const ProcessIndex learner : {0U, 1U}) on(event::Started{learner});
  }
};

TEST_F(ReplicaMachine, StartsAgainAsOneWhenOneFails) {
  EXPECT_EQ(ended(3, 1), "clean 3, SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(on(event::CleanedUp{3}), "") << "the leader has not ended";
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 2s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2, start 3");
  EXPECT_EQ(state.processes[2].restarts, 1U);
  EXPECT_EQ(state.processes[3].restarts, 1U);
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Started{3}), "");
  EXPECT_EQ(on(event::Ready{2}), "");
  EXPECT_EQ(
      ended(2, 4),
      "clean 2, decide failed 2 exited with code 4, SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, "
      "grace 1 1m")
      << "it has had its restart";
}

TEST_F(ReplicaMachine, TheLeaderMayEndBeforeTheOtherIsCleanedUp) {
  ended(3, 1);
  EXPECT_EQ(ended(2), "clean 2") << "that it stops is no failure";
  EXPECT_EQ(on(event::CleanedUp{2}), "");
  EXPECT_EQ(on(event::CleanedUp{3}), "backoff 2 2s");
}

TEST_F(ReplicaMachine, BothFailAtOnceAndStartAgainOnce) {
  EXPECT_EQ(ended(3, 1), "clean 3, SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(ended(2, 1), "clean 2");
  on(event::CleanedUp{3});
  on(event::CleanedUp{2});
  on(event::BackoffOver{2});
  EXPECT_EQ(state.processes[2].restarts, 1U);
}

TEST_F(ReplicaMachine, WhoDoesNotStopIsKilled) {
  ended(3, 1);
  EXPECT_EQ(on(event::GraceOver{2}), "kill 2");
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL)}), "clean 2");
}

TEST_F(ReplicaMachine, ALostPartTakesAllOfThemAlong) {
  EXPECT_EQ(on(event::PartLost{2, "gone"}), "kill 2");
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL)}), "clean 2, SIGINT to group 3, grace 3 5s");
}

TEST_F(ReplicaMachine, OneThatIsBeingStartedIsStoppedOnceItIsThere) {
  ended(3, 1);
  ended(2, 1);
  on(event::CleanedUp{3});
  on(event::CleanedUp{2});
  rules.processes[2].restart.max = rules.processes[3].restart.max = 2;
  on(event::BackoffOver{2});
  on(event::Started{2});
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::Started{3}), "SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(ended(3), "clean 3");
  on(event::CleanedUp{3});
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 2s");
}

TEST_F(ReplicaMachine, AnEndWhileItGathersFinishes) {
  ended(3, 1);
  on(event::CleanedUp{3});
  ended(0);
  EXPECT_EQ(ended(1), "clean 1, decide finished");
  EXPECT_EQ(ended(2), "clean 2");
  for (const ProcessIndex process : {0U, 1U}) on(event::CleanedUp{process});
  EXPECT_EQ(on(event::CleanedUp{2}), "finish finished");
}

TEST_F(ReplicaMachine, WithoutARestartItsFailureIsTheRunsEnd) {
  rules.processes[2].restart.on_failure = rules.processes[3].restart.on_failure = false;
  EXPECT_TRUE(ended(3, 1).starts_with("clean 3, decide failed 3 exited with code 1"));
}

// --- what a run outlives ---

TEST_F(Machine, ABackoffDoublesUpToItsLimit) {
  rules.processes[2].restart = {.on_failure = true, .max = 9, .backoff = 1s, .most_backoff = 3s};
  all_ready();
  for (const auto* wait : {"1s", "2s", "3s", "3s"}) {
    EXPECT_EQ(ended(2, 3), "clean 2");
    EXPECT_EQ(on(event::CleanedUp{2}), fmt::format("backoff 2 {}", wait));
    EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
    on(event::Started{2});
    on(event::Ready{2});
  }
}

TEST_F(Machine, RestartsThatAreLongAgoCountNoMore) {
  rules.processes[2].restart = {.on_failure = true, .max = 1, .backoff = 1s, .within = 60s};
  all_ready();
  ended(2, 3);
  on(event::CleanedUp{2});
  EXPECT_EQ(on(event::BackoffOver{2}), "forget 2 1m, start 2");
  on(event::Started{2});
  on(event::Ready{2});
  EXPECT_EQ(on(event::RestartForgotten{2}), "");
  EXPECT_EQ(ended(2, 3), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 1s");
  on(event::BackoffOver{2});
  on(event::Started{2});
  on(event::Ready{2});
  EXPECT_EQ(state.processes[2].restarts, 2U);
  EXPECT_EQ(ended(2, 3),
            "clean 2, decide failed 2 exited with code 3, SIGTERM to group 0, grace 0 1m, SIGTERM to group "
            "1, grace 1 1m");
}

TEST_F(Machine, WhatFailsInTheSameWayAtOnceIsNotStartedForEver) {
  rules.processes[2].restart = {.on_failure = true, .max = 9, .backoff = 1s};
  all_ready();
  const auto fail = [&](int code, bool soon) {
    const auto said = on(event::Ended{2, sys::WaitStatus::exited(code), soon});
    on(event::CleanedUp{2});
    on(event::BackoffOver{2});
    on(event::Started{2});
    on(event::Ready{2});
    return said;
  };
  EXPECT_EQ(fail(3, true), "clean 2");
  EXPECT_EQ(fail(3, true), "clean 2");
  EXPECT_EQ(fail(4, true), "clean 2");  // in another way
  EXPECT_EQ(fail(3, true), "clean 2");
  EXPECT_EQ(fail(3, false), "clean 2");  // after it has worked
  EXPECT_EQ(fail(3, true), "clean 2");
  EXPECT_EQ(fail(3, true), "clean 2");
  EXPECT_EQ(fail(3, true).substr(0, 43), "clean 2, decide failed 2 exited with code 3");
  EXPECT_EQ(std::get<ProcessFailed>(std::get<Ending>(state.phase).cause).alike, 3U);
}

TEST_F(Machine, WhatDoesNotAnswerIsKilledAndStartsAgain) {
  rules.processes[2].watched = true;
  rules.processes[2].restart = {.on_failure = true, .max = 1, .backoff = 1s};
  start();
  on(event::Started{2});
  EXPECT_EQ(on(event::Ready{2}), "watch 2");
  EXPECT_EQ(on(event::Unresponsive{2, "silence"}), "kill 2");
  EXPECT_EQ(on(event::Unresponsive{2, "silence"}), "");
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL)}), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 1s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
  on(event::Started{2});
  EXPECT_EQ(on(event::Ready{2}), "watch 2");
  EXPECT_EQ(on(event::Unresponsive{2, "silence"}).substr(0, 27), "decide silent 2: silence, S");
}

/// Engines 2, 3 and 4; two of them are enough.
class Tolerant : public Machine {
 protected:
  Tolerant() {
    rules.processes.push_back(rules.processes[3]);
    rules.stages[0].push_back(4);
    for (const ProcessIndex engine : {2U, 3U, 4U}) rules.processes[engine].tolerate = 2;
    start();
    for (const ProcessIndex engine : {2U, 3U, 4U}) {
      on(event::Started{engine});
      on(event::Ready{engine});
    }
    for (const ProcessIndex learner : {0U, 1U}) on(event::Started{learner});
  }
};

TEST_F(Tolerant, TheRunGoesOnWithEnough) {
  EXPECT_EQ(ended(3, 9), "clean 3, without 3 (failed 3 exited with code 9), 2 left");
  EXPECT_EQ(on(event::CleanedUp{3}), "");
  EXPECT_EQ(ended(2, 8).substr(0, 43), "clean 2, decide failed 2 exited with code 8");
}

TEST_F(Machine, TheFirstProcessOfThePlanIsLeftAsAny) {
  const auto engine = rules.processes[2];
  rules.processes = {engine, engine, rules.processes[0]};
  rules.stages = {{0, 1, 2}};
  for (const ProcessIndex process : {0U, 1U}) {
    rules.processes[process].ready = Ready::started;
    rules.processes[process].tolerate = 1;
  }
  start();
  for (const ProcessIndex process : {0U, 1U, 2U}) on(event::Started{process});
  EXPECT_EQ(ended(1, 9), "clean 1, without 1 (failed 1 exited with code 9), 1 left");
}

TEST_F(Tolerant, WhatDoesNotAnswerIsKilledAndLost) {
  EXPECT_EQ(on(event::Unresponsive{4, "silence"}), "without 4 (silent 4: silence), 2 left, kill 4");
  EXPECT_EQ(on(event::Ended{4, sys::WaitStatus(SIGKILL)}), "clean 4");
  on(event::CleanedUp{4});
  ended(0);
  EXPECT_EQ(ended(1).substr(0, 26), "clean 1, decide finished, ");
}

TEST_F(Tolerant, ANodeWithTolerableProcessesIsLostAlone) {
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "without 4 (lost n2), 2 left, recover 4");
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}).substr(0, 14), "decide lost n1");
}

TEST_F(Machine, WhatIsLostBeforeItsTurnIsNotStarted) {
  rules.processes.push_back(rules.processes[3]);
  rules.stages = {{0}, {2, 3, 4}, {1}};
  for (const ProcessIndex engine : {2U, 3U, 4U}) rules.processes[engine].tolerate = 2;
  EXPECT_EQ(start(), "start 0");
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "without 4 (lost n2), 2 left, recover 4");
  EXPECT_EQ(on(event::Started{0}), "start 2, start 3");
  EXPECT_EQ(on(event::NodeBack{"n2", {4}}), "start 4") << "its turn has come";
}

TEST_F(Machine, WhatIsBackBeforeItsTurnWaitsForIt) {
  rules.processes.push_back(rules.processes[3]);
  rules.stages = {{0}, {2, 3, 4}, {1}};
  for (const ProcessIndex engine : {2U, 3U, 4U}) rules.processes[engine].tolerate = 2;
  start();
  on(event::NodeLost{"n2", "gone", {4}});
  EXPECT_EQ(on(event::NodeBack{"n2", {4}}), "");
  EXPECT_EQ(on(event::Started{0}), "start 2, start 3, start 4");
}

TEST_F(Tolerant, WhatWasLostWithItsNodeStartsAgainOnAnother) {
  on(event::NodeLost{"n2", "gone", {4}});
  EXPECT_EQ(on(event::NodeBack{"n5", {4}}), "start 4");
  EXPECT_EQ(state.processes[4].restarts, 1U);
  EXPECT_EQ(on(event::Started{4}), "await 4");
  EXPECT_EQ(on(event::Ready{4}), "");
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}), "without 3 (lost n1), 2 left, recover 3")
      << "it counts again";
  EXPECT_EQ(on(event::NodeLost{"n5", "gone", {4}}).substr(0, 14), "decide lost n5");
  EXPECT_EQ(on(event::NodeBack{"n6", {4}}), "") << "the run ends";
}

TEST_F(Tolerant, WhatWasGivenUpStaysSoOnAnotherNode) {
  ended(4, 9);
  on(event::CleanedUp{4});
  EXPECT_EQ(on(event::NodeBack{"n2", {4}}), "");
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "");
  EXPECT_EQ(on(event::NodeBack{"n2", {4}}), "");
}

TEST_F(Tolerant, ANodeThatIsBackHasNothingOfWhatItHas) {
  EXPECT_EQ(on(event::NodeBack{"n2", {4}}), "") << "it was not lost";
}

TEST_F(Tolerant, ANodeWithALearnerEndsTheRun) {
  EXPECT_EQ(on(event::NodeLost{"n0", "gone", {0, 4}}).substr(0, 14), "decide lost n0");
}

TEST_F(Tolerant, TwoNodesThatAreLostAtOnceAreTooMany) {
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3, 4}}).substr(0, 14), "decide lost n1");
}

TEST_F(Tolerant, ANodeMayFollowWhatItHas) {
  ended(4, 9);
  on(event::CleanedUp{4});
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "");
  EXPECT_EQ(on(event::NodeLost{"n3", "gone", {}}).substr(0, 14), "decide lost n3");
}

TEST_F(Machine, WhatWaitsOnALostNodeIsNotLeft) {
  for (int i = 0; i < 2; ++i) rules.processes.push_back(rules.processes[3]);
  rules.stages = {{0}, {2, 3, 4, 5}, {1}};
  for (const ProcessIndex engine : {2U, 3U, 4U, 5U}) rules.processes[engine].tolerate = 3;
  start();
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {4, 5}}).substr(0, 14), "decide lost n1");
}

TEST_F(Machine, WhatNlaunchEndsIsNoCrashLoop) {
  rules.processes[2].watched = true;
  rules.processes[2].restart = {.on_failure = true, .max = 9, .backoff = 1s};
  all_ready();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(on(event::Unresponsive{2, "silence"}), "kill 2");
    EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL), true}), "clean 2");
    on(event::CleanedUp{2});
    on(event::BackoffOver{2});
    on(event::Started{2});
    on(event::Ready{2});
  }
}

TEST_F(Machine, WithoutAnythingLeftTheRunHasFailed) {
  rules.processes = {rules.processes[2], rules.processes[3]};
  rules.stages = {{0, 1}};
  for (auto& engine : rules.processes) engine.tolerate = 0;
  start();
  for (const ProcessIndex engine : {0U, 1U}) on(event::Started{engine});
  EXPECT_EQ(ended(0, 7), "clean 0, without 0 (failed 0 exited with code 7), 1 left");
  EXPECT_EQ(ended(1, 7).substr(0, 54), "clean 1, without 1 (failed 1 exited with code 7), 0 le");
  EXPECT_TRUE(std::holds_alternative<ProcessFailed>(std::get<Ending>(state.phase).cause));
}

TEST_F(Tolerant, RestartsComeFirst) {
  rules.processes[3].restart = {.on_failure = true, .max = 1, .backoff = 1s};
  EXPECT_EQ(ended(3, 9), "clean 3");
  EXPECT_EQ(on(event::CleanedUp{3}), "backoff 3 1s");
  on(event::BackoffOver{3});
  EXPECT_EQ(on(event::SpawnFailed{3, "no such file"}), "without 3 (not started 3), 2 left");
}

TEST_F(Machine, OfAReplicaThatIsLostAllAre) {
  rules.processes.push_back(rules.processes[3]);
  rules.processes.push_back(rules.processes[3]);
  rules.stages[0] = {2, 3, 4, 5};
  rules.replicas = {{2, 3}, {4, 5}};
  for (const ProcessIndex engine : {2U, 3U, 4U, 5U}) {
    rules.processes[engine].tolerate = 1;
    rules.processes[engine].ready = Ready::started;
    rules.processes[engine].replica = engine < 4 ? 0 : 1;
  }
  start();
  for (const ProcessIndex engine : {2U, 3U, 4U, 5U}) on(event::Started{engine});
  EXPECT_EQ(ended(3, 9),
            "clean 3, SIGINT to group 2, grace 2 5s, without 2+3 (failed 3 exited with code 9), 1 left");
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGINT)}), "clean 2");
  EXPECT_EQ(ended(4, 7).substr(0, 43), "clean 4, decide failed 4 exited with code 7");
}

/// Engines 2 and 3 are one replica over two nodes, 4 and 5 another; one is enough.
class TolerantReplicas : public Machine {
 protected:
  TolerantReplicas() {
    for (int i = 0; i < 2; ++i) rules.processes.push_back(rules.processes[3]);
    rules.stages = {{2, 3, 4, 5}, {0, 1}};
    rules.replicas = {{2, 3}, {4, 5}};
    for (const ProcessIndex engine : {2U, 3U, 4U, 5U}) {
      rules.processes[engine].tolerate = 1;
      rules.processes[engine].replica = engine < 4 ? 0 : 1;
      rules.processes[engine].ready = Ready::started;
    }
    start();
    for (const ProcessIndex process : {2U, 3U, 4U, 5U, 0U, 1U}) on(event::Started{process});
  }
};

TEST_F(TolerantReplicas, ItStartsAgainOnceTheOtherNodesPartHasEnded) {
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}),
            "SIGINT to group 2, grace 2 5s, without 2+3 (lost n1), 1 left, recover 3");
  EXPECT_EQ(on(event::NodeBack{"n5", {3}}), "") << "2 has not ended yet";
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "start 2, start 3");
}

TEST_F(TolerantReplicas, ItStartsAgainOnceAllOfItHaveANode) {
  on(event::NodeLost{"n1", "gone", {3}});
  EXPECT_EQ(on(event::NodeLost{"n0", "gone", {2}}), "recover 2");
  EXPECT_EQ(on(event::NodeBack{"n5", {3}}), "");
  EXPECT_EQ(on(event::NodeLost{"n5", "gone", {3}}), "recover 3") << "before it has started";
  EXPECT_EQ(on(event::NodeBack{"n0", {2}}), "");
  EXPECT_EQ(on(event::NodeBack{"n5", {3}}), "start 2, start 3");
}

TEST_F(TolerantReplicas, OneThatIsBackIsNotOneThatHasFailedBefore) {
  rules.processes[2].restart = rules.processes[3].restart = {.on_failure = true, .max = 1, .backoff = 1s};
  on(event::NodeLost{"n1", "gone", {2, 3}});
  on(event::NodeBack{"n5", {2, 3}});
  on(event::Started{2});
  on(event::Started{3});
  EXPECT_EQ(ended(2, 1), "clean 2, SIGINT to group 3, grace 3 5s");
  on(event::CleanedUp{2});
  EXPECT_EQ(ended(3, 1), "clean 3");
  EXPECT_EQ(on(event::CleanedUp{3}), "backoff 2 1s") << "the node was no failure of its";
}

TEST_F(Machine, OneThatIsWishedToStartAgainIsNoFailure) {
  all_ready();
  EXPECT_EQ(on(event::RestartWanted{{2}}), "SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 0s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
  EXPECT_EQ(state.processes[2].restarts, 1U);
  EXPECT_EQ(state.processes[2].counted, 0U);
  on(event::Started{2});
  on(event::Ready{2});
  EXPECT_EQ(ended(2, 1).substr(0, 36), "clean 2, decide failed 2 exited with");
  EXPECT_EQ(on(event::RestartWanted{{3}}), "") << "the run ends";
}

TEST_F(Machine, OneThatIsAboutToStartStartsAgainAsWell) {
  start();
  EXPECT_EQ(on(event::RestartWanted{{2}}), "");
  EXPECT_EQ(on(event::Started{2}), "SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 0s");
}

TEST_F(TolerantReplicas, AWishedRestartIsThatOfTheWholeReplica) {
  EXPECT_EQ(on(event::RestartWanted{{2, 3}}), "SIGINT to group 2, grace 2 5s, SIGINT to group 3, grace 3 5s");
  ended(3);
  on(event::CleanedUp{3});
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 0s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2, start 3");
  EXPECT_EQ(state.processes[3].counted, 0U);
}

TEST_F(Machine, OneThatIsParkedStartsWhenItIsWishedAgain) {
  all_ready();
  EXPECT_EQ(on(event::Park{{3}}), "SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(on(event::Unpark{{3}}), "") << "it has not exited yet";
  EXPECT_EQ(ended(3, 1), "clean 3");
  EXPECT_EQ(on(event::CleanedUp{3}), "start 3");
  on(event::Started{3});
  on(event::Park{{3}});
  ended(3, 1);
  on(event::CleanedUp{3});
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}), "recover 3");
  EXPECT_EQ(on(event::NodeBack{"n5", {3}}), "") << "nobody wishes it yet";
  on(event::NodeLost{"n5", "gone", {3}});
  EXPECT_EQ(on(event::Unpark{{3}}), "") << "it has no node";
  EXPECT_EQ(on(event::NodeBack{"n6", {3}}), "start 3");
}

TEST_F(Machine, OneThatIsLostOrParkedIsNotWishedToStartAgainAnyMore) {
  all_ready();
  on(event::RestartWanted{{3}});
  on(event::Park{{3}});
  ended(3);
  on(event::CleanedUp{3});
  on(event::Unpark{{3}});
  on(event::Started{3});
  EXPECT_EQ(ended(3, 1).substr(0, 31), "clean 3, decide failed 3 exited");
}

TEST_F(Machine, OneThatIsParkedMayFailToStart) {
  start();
  on(event::Park{{3}});
  EXPECT_EQ(on(event::SpawnFailed{3, "no such file"}), "");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Ready{2}), "start 0, start 1");
}

TEST_F(Tolerant, OneThatIsParkedOnADrainedNodeHasNoneUntilAnotherComes) {
  on(event::Park{{4}});
  ended(4);
  on(event::CleanedUp{4});
  EXPECT_EQ(on(event::Drain{{4}}), "release 4");
  EXPECT_EQ(on(event::Unpark{{4}}), "");
  EXPECT_EQ(on(event::NodeBack{"n5", {4}}), "start 4");
}

TEST_F(Tolerant, ANodeIsLeftOnceNothingOfItLives) {
  EXPECT_EQ(on(event::Drain{{4}}), "SIGINT to group 4, grace 4 5s");
  EXPECT_EQ(on(event::NodeBack{"n5", {4}}), "") << "it has not been left yet";
  EXPECT_EQ(ended(4, 1), "clean 4");
  EXPECT_EQ(on(event::CleanedUp{4}), "release 4");
  EXPECT_EQ(on(event::NodeBack{"n5", {4}}), "start 4");
}

TEST_F(Tolerant, ANodeThatIsLostWhileItIsDrainedIsLostAsAny) {
  on(event::Drain{{4}});
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "recover 4");
  EXPECT_EQ(on(event::NodeBack{"n5", {4}}), "start 4");
  ended(0);
  EXPECT_EQ(on(event::CleanedUp{0}), "") << "it is released no more";
}

TEST_F(Tolerant, WhatIsDrainedDoesNotCountAsLeft) {
  on(event::Drain{{4}});
  EXPECT_FALSE(can_do_without(rules, state, {3}));
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}).substr(0, 14), "decide lost n1");
}

TEST_F(TolerantReplicas, APartThatIsDrainedTakesAllOfTheReplicaAlong) {
  EXPECT_EQ(on(event::Drain{{3}}), "SIGINT to group 2, grace 2 5s, SIGINT to group 3, grace 3 5s");
  ended(3);
  EXPECT_EQ(on(event::CleanedUp{3}), "release 3");
  EXPECT_EQ(on(event::NodeBack{"n5", {3}}), "") << "2 has not ended yet";
  ended(2);
  EXPECT_EQ(on(event::CleanedUp{2}), "start 2, start 3");
}

TEST_F(Machine, OneThatHasStartedAgainIsStaleUntilItHasTheWeights) {
  rules.processes[2].gets_fresh = true;
  rules.processes[2].restart = {.on_failure = true, .max = 9, .backoff = 1s};
  all_ready();
  EXPECT_FALSE(std::get<Serving>(state.processes[2].phase).stale)
      << "the first start has those of the others";
  ended(2, 1);
  on(event::CleanedUp{2});
  on(event::BackoffOver{2});
  on(event::Started{2});
  EXPECT_EQ(on(event::Ready{2}), "fresh? 2");
  EXPECT_TRUE(std::get<Serving>(state.processes[2].phase).stale);
  EXPECT_TRUE(is_listed(state, 2));
  EXPECT_EQ(on(event::Fresh{2}), "");
  EXPECT_FALSE(std::get<Serving>(state.processes[2].phase).stale);
}

TEST_F(Machine, WhatEndsInTheSameWayBeforeItIsReadyIsACrashLoopHoweverLongItTakes) {
  rules.processes[2].restart = {.on_failure = true, .max = 9, .backoff = 1s};
  start();
  for (int i = 0; i < 2; ++i) {
    on(event::Started{2});
    EXPECT_EQ(ended(2, 7), "clean 2");
    on(event::CleanedUp{2});
    on(event::BackoffOver{2});
  }
  on(event::Started{2});
  EXPECT_EQ(ended(2, 7).substr(0, 38), "clean 2, decide failed 2 exited with c");
}

TEST_F(Machine, ATaskWhoseTimeIsOverAndThatEndsWellWasNotReady) {
  rules.processes[2].ready = Ready::exited;
  rules.processes[2].restart = {.on_failure = true, .max = 1, .backoff = 1s};
  start();
  on(event::Started{2});
  EXPECT_EQ(on(event::ReadyTimeout{2}), "SIGINT to group 2, grace 2 5s");
  ended(2);
  on(event::CleanedUp{2});
  on(event::BackoffOver{2});
  on(event::Started{2});
  on(event::Started{3});
  EXPECT_EQ(on(event::ReadyTimeout{2}).substr(0, 18), "decide not ready 2");
}

}  // namespace
}  // namespace nlaunch::supervise
