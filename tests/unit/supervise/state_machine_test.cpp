#include "supervise/state_machine.h"

#include <gtest/gtest.h>

#include <csignal>

#include "supervise/stop_signal.h"
#include "unit/supervise/machine.h"

namespace nlaunch::supervise {
namespace {

TEST_F(Machine, StartsAStageWhenAllOfTheStageBeforeAreReady) {
  EXPECT_EQ(start(), "start 2, start 3");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Started{3}), "await 3");
  EXPECT_EQ(on(event::Ready{3}), "");
  EXPECT_EQ(on(event::Ready{2}), "start 0, start 1");
  EXPECT_EQ(on(event::Started{0}), "");
}

TEST_F(Machine, EndsWellWhenEveryLearnerHasExitedZeroAndStopsTheRest) {
  all_ready();
  EXPECT_EQ(ended(0), "clean 0");
  EXPECT_EQ(ended(1),
            "clean 1, decide finished, SIGINT to group 2, grace 2 5s, SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(ended(2, 1), "clean 2") << "how the rest ends is no failure";
  for (const ProcessIndex process : {0U, 1U, 2U}) EXPECT_EQ(on(event::CleanedUp{process}), "");
  EXPECT_EQ(ended(3, 1), "clean 3");
  EXPECT_EQ(on(event::CleanedUp{3}), "finish finished");
}

TEST_F(Machine, AServerThatHasLostAPartHasFailed) {
  all_ready();
  EXPECT_EQ(on(event::PartLost{2, "VLLM::EngineCore (pid 7) was killed by SIGKILL"}),
            "decide lost a part 2, SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(on(event::PartLost{3, "its own"}), "") << "the first cause decides";
}

TEST_F(Machine, AServerThatHasLostAPartIsRestartedWhereItMayBe) {
  rules.processes[2].restart = {true, 1, 3s};
  all_ready();
  EXPECT_EQ(on(event::PartLost{2, "a part"}), "kill 2");
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL)}), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 3s");
}

TEST_F(Machine, PartsMatterToServersAlone) {
  rules.processes[3].exit_ok = true;
  start();
  on(event::Started{2});
  EXPECT_EQ(on(event::PartLost{2, "a part"}), "") << "it is not ready: its start says why";
  all_ready();
  EXPECT_EQ(on(event::PartLost{0, "a part"}), "") << "a learner goes on without its own engine";
  EXPECT_EQ(on(event::PartLost{3, "a part"}), "") << "it may end";
}

TEST_F(Machine, TheFirstFailureDecidesAndTheStopOrderIsReversed) {
  all_ready();
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGSEGV)}),
            "clean 2, decide failed 2 was terminated by SIGSEGV, "
            "SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(ended(0, 3), "clean 0");
  EXPECT_EQ(on(event::GraceOver{1}), "kill 1");
  EXPECT_EQ(on(event::Ended{1, sys::WaitStatus(SIGKILL)}), "clean 1, SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(ended(3), "clean 3");
  for (const ProcessIndex process : {0U, 1U, 2U}) EXPECT_EQ(on(event::CleanedUp{process}), "");
  EXPECT_EQ(on(event::CleanedUp{3}), "finish failed 2 was terminated by SIGSEGV");
}

TEST_F(Machine, AnEngineThatExitsZeroIsAFailureUnlessItsExitIsOk) {
  all_ready();
  EXPECT_TRUE(ended(2).starts_with("clean 2, decide failed 2 exited with code 0"));
  rules.processes[2].exit_ok = true;
  all_ready();
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "");
  all_ready();
  EXPECT_TRUE(ended(2, 4).starts_with("clean 2, decide failed 2 exited with code 4")) << "ok means 0";
}

TEST_F(Machine, OneThatEndsBeforeItWasReadyWasNotReady) {
  for (const ProcessIndex process : {2U, 3U}) rules.processes[process].exit_ok = true;
  start();
  on(event::Started{2});
  EXPECT_EQ(ended(2), "clean 2, decide ended unready 2");
  rules.processes[2].restart = {true, 1, 3s};
  start();
  on(event::Started{2});
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 3s");
  rules.processes[0].ready = Ready::checked;
  all_ready();
  EXPECT_EQ(ended(0), "clean 0") << "a learner that has done its work";
}

TEST_F(Machine, AProgramThatPreparesIsReadyWhenItHasExitedZero) {
  for (const ProcessIndex process : {2U, 3U}) rules.processes[process].ready = Ready::exited;
  EXPECT_EQ(start(), "start 2, start 3");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Started{3}), "await 3");
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(ended(3), "clean 3, start 0, start 1");
}

TEST_F(Machine, AProgramThatPreparesAndFailsEndsTheRun) {
  rules.processes[2].ready = Ready::exited;
  rules.processes[2].exit_ok = true;
  start();
  on(event::Started{2});
  EXPECT_EQ(ended(2, 3), "clean 2, decide failed 2 exited with code 3");
}

TEST_F(Machine, ATaskThatTakesTooLongIsKilledAndStartedAgainWhileItMay) {
  rules.processes[2].ready = Ready::exited;
  rules.processes[2].restart = {.on_failure = true, .max = 1, .backoff = 1s};
  start();
  on(event::Started{2});
  EXPECT_EQ(on(event::ReadyTimeout{2}), "SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(ended(2), "clean 2") << "it has not done its work, whatever it says";
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 1s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::ReadyTimeout{2}).substr(0, 18), "decide not ready 2");
}

TEST_F(Machine, TheRunWaitsForATaskBehindItsLearners) {
  rules.processes[2].ready = rules.processes[3].ready = Ready::exited;
  rules.processes[0].ready = rules.processes[1].ready = Ready::exited;
  rules.stages = {{0, 1}, {2, 3}};
  EXPECT_EQ(start(), "start 0, start 1");
  for (const ProcessIndex learner : {0U, 1U}) on(event::Started{learner});
  EXPECT_EQ(ended(0), "clean 0");
  EXPECT_EQ(ended(1), "clean 1, start 2, start 3");
  for (const ProcessIndex task : {2U, 3U}) on(event::Started{task});
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(ended(3).substr(0, 23), "clean 3, decide finishe");
}

TEST_F(Machine, ALostNodeEndsTheRunAndNobodyCleansUpThere) {
  all_ready();
  EXPECT_EQ(on(event::NodeLost{"node1", "no answer", {1, 3}}),
            "decide lost node1, SIGTERM to group 0, grace 0 1m");
  EXPECT_EQ(ended(0), "clean 0, SIGINT to group 2, grace 2 5s");
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{0}), "");
  EXPECT_EQ(on(event::CleanedUp{2}), "finish lost node1");
}

TEST_F(Machine, NearTheWalltimeLearnersGetTheirOwnSignal) {
  rules.walltime = true;
  for (const ProcessIndex learner : {0U, 1U}) rules.processes[learner].walltime_signal = SIGUSR1;
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGUSR2}),
            "decide walltime, SIGUSR1 to group 0, grace 0 1m, SIGUSR1 to group 1, grace 1 1m");
  EXPECT_EQ(ended(0), "clean 0");
  EXPECT_EQ(ended(1), "clean 1, SIGINT to group 2, grace 2 5s, SIGINT to group 3, grace 3 5s");
}

TEST_F(Machine, WithoutLearnersTheRunEndsWhenAllHaveEnded) {
  const ProcessRules service{.process = 0, .role = "tool"};
  rules.processes = {service, service};
  rules.stages = {{0, 1}};
  EXPECT_EQ(start(), "start 0, start 1");
  for (const ProcessIndex process : {0U, 1U}) on(event::Started{process});
  EXPECT_EQ(ended(0), "clean 0");
  EXPECT_EQ(ended(1), "clean 1, decide finished");
  EXPECT_EQ(on(event::CleanedUp{0}), "");
  EXPECT_EQ(on(event::CleanedUp{1}), "finish finished");
}

TEST_F(Machine, ARunWithoutProcessesFinishesAtOnce) {
  rules.processes.clear();
  rules.stages = {{}};
  EXPECT_EQ(start(), "decide finished, finish finished");
}

TEST_F(Machine, RestartsARoleAfterItsTreeIsCleanAndOnlyMaxTimes) {
  rules.processes[2].restart = {true, 1, 5s};
  all_ready();
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 5s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Ready{2}), "");
  EXPECT_EQ(state.processes[2].restarts, 1U);
  EXPECT_TRUE(ended(2, 1).starts_with("clean 2, decide failed 2"));
}

TEST_F(Machine, WhatEndsWellIsNotRestarted) {
  rules.processes[0].restart = {true, 1, 5s};
  all_ready();
  EXPECT_EQ(ended(0), "clean 0");
  EXPECT_EQ(on(event::CleanedUp{0}), "") << "no backoff";
}

TEST_F(Machine, ARestartThatIsDueIsCancelledWhenTheRunEnds) {
  rules.processes[2].restart = {true, 3, 5s};
  all_ready();
  ended(2, 1);
  on(event::CleanedUp{2});
  ended(0, 9);
  EXPECT_EQ(on(event::BackoffOver{2}), "");
}

TEST_F(Machine, AProgramThatCannotBeStartedEndsTheRunAndNoFurtherOneIsStarted) {
  start();
  EXPECT_EQ(on(event::SpawnFailed{2, "no such file"}), "decide not started 2, finish not started 2");
  EXPECT_TRUE(std::holds_alternative<Waiting>(state.processes[3].phase)) << "it must not be started any more";
}

TEST_F(Machine, AReadinessTimeoutEndsTheRun) {
  start();
  on(event::Started{2});
  on(event::Started{3});
  EXPECT_EQ(on(event::ReadyTimeout{3}),
            "decide not ready 3, SIGINT to group 2, grace 2 5s, SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(on(event::Ready{2}), "") << "nothing is started any more";
}

TEST_F(Machine, InterruptOnceStopsTwiceKills) {
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGINT}),
            "decide SIGINT, SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(on(event::Signal{SIGINT}), "kill all");
  for (const ProcessIndex process : {0U, 1U, 2U, 3U}) on(event::Ended{process, sys::WaitStatus(SIGKILL)});
  for (const ProcessIndex process : {0U, 1U, 2U}) EXPECT_EQ(on(event::CleanedUp{process}), "");
  EXPECT_EQ(on(event::CleanedUp{3}), "finish SIGINT");
}

TEST_F(Machine, NlaunchStopIsAnInterruptThatNoExperimentRedirects) {
  rules.signals[stop_signal()] = {SignalRule::Action::ignore, {}};
  all_ready();
  EXPECT_EQ(on(event::Signal{stop_signal()}),
            "decide SIGRTMIN, SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(on(event::Signal{stop_signal()}), "kill all");
}

TEST_F(Machine, ALostGuardianKillsAtOnceButDoesNotReplaceTheCause) {
  all_ready();
  EXPECT_EQ(on(event::GuardianLost{}), "decide guardian gone, kill all");
  all_ready();
  ended(0, 3);
  EXPECT_EQ(on(event::GuardianLost{}), "kill all");
  EXPECT_TRUE(std::holds_alternative<ProcessFailed>(std::get<Killing>(state.phase).cause));
}

TEST_F(Machine, SomeSignalsWouldEndARun) {
  const auto why = [&](int signal) {
    const auto cause = cause_of(rules, signal);
    return cause ? name_of(*cause) : "nothing";
  };
  for (const int signal : {SIGINT, SIGQUIT, stop_signal()}) EXPECT_EQ(why(signal), "interrupted") << signal;
  for (const int signal : {SIGTERM, SIGHUP}) EXPECT_EQ(why(signal), "terminated") << signal;
  for (const int signal : {0, SIGUSR1, SIGUSR2}) EXPECT_EQ(why(signal), "nothing") << signal;
  rules.signals[SIGTERM] = {SignalRule::Action::ignore, {}};
  rules.signals[SIGUSR1] = {SignalRule::Action::stop, {}};
  rules.walltime = true;
  EXPECT_EQ(why(SIGTERM), "nothing");
  EXPECT_EQ(why(SIGUSR1), "terminated");
  EXPECT_EQ(why(SIGUSR2), "walltime");
}

TEST_F(Machine, SignalsDoWhatTheExperimentSays) {
  rules.signals[SIGUSR1] = {SignalRule::Action::forward, {"learner"}};
  rules.signals[SIGHUP] = {SignalRule::Action::ignore, {}};
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGUSR1}), "SIGUSR1 to 0, SIGUSR1 to 1");
  EXPECT_EQ(on(event::Signal{SIGUSR2}), "") << "a signal that nobody asked for would end most programs";
  EXPECT_EQ(on(event::Signal{SIGHUP}), "");
  EXPECT_TRUE(on(event::Signal{SIGTERM}).starts_with("decide SIGTERM, SIGTERM to group 0"));
  EXPECT_EQ(on(event::Signal{SIGTERM}), "");
}

TEST_F(Machine, AWatcherMayEndTheRun) {
  all_ready();
  EXPECT_TRUE(
      on(event::Abort{"wrong libnccl", 70}).starts_with("decide aborted: wrong libnccl, SIGTERM to group 0"));
}

TEST_F(Machine, TheRunGoesOnUntilTheLastLearnerHasEndedWhicheverThatIs) {
  all_ready();
  EXPECT_EQ(ended(1), "clean 1");
  EXPECT_EQ(on(event::CleanedUp{1}), "");
  EXPECT_TRUE(ended(0).starts_with("clean 0, decide finished"));
}

TEST_F(Machine, AStageWithoutProcessesIsReady) {
  rules.stages = {{}, {2, 3}, {}, {0, 1}};
  EXPECT_EQ(start(), "start 2, start 3");
  for (const ProcessIndex engine : {2U, 3U}) on(event::Started{engine});
  on(event::Ready{2});
  EXPECT_EQ(on(event::Ready{3}), "start 0, start 1");
}

TEST_F(Machine, OneThatIsRestartedIsWaitedFor) {
  rules.processes[2].restart = {true, 3, 5s};
  start();
  on(event::Started{2});
  EXPECT_EQ(ended(2, 1), "clean 2");
  on(event::Started{3});
  EXPECT_EQ(on(event::Ready{3}), "") << "it has not been ready yet";
  EXPECT_EQ(on(event::CleanedUp{2}), "backoff 2 5s");
  EXPECT_EQ(on(event::BackoffOver{2}), "start 2");
  EXPECT_EQ(on(event::Started{2}), "await 2");
  EXPECT_EQ(on(event::Ready{2}), "start 0, start 1");
}

TEST_F(Machine, ALearnerThatIsRestartedKeepsTheRunGoing) {
  rules.processes[0].restart = {true, 3, 5s};
  all_ready();
  EXPECT_EQ(ended(0, 1), "clean 0");
  EXPECT_EQ(ended(1), "clean 1") << "the other one is to come back";
  EXPECT_EQ(on(event::CleanedUp{1}), "");
  EXPECT_EQ(on(event::CleanedUp{0}), "backoff 0 5s");
}

TEST_F(Machine, NothingIsRestartedOnceTheRunEnds) {
  for (auto& process : rules.processes) process.restart = {true, 3, 5s};
  for (const ProcessIndex engine : {2U, 3U}) rules.processes[engine].leave = true;
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGTERM}),
            "decide SIGTERM, SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(on(event::PartLost{3, "a part"}), "") << "it is asked to end soon";
  EXPECT_EQ(ended(2, 1), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "");
  EXPECT_EQ(ended(0, 1), "clean 0");
  EXPECT_EQ(ended(1, 1), "clean 1, SIGINT to group 3, grace 3 5s");
  for (const ProcessIndex learner : {0U, 1U}) EXPECT_EQ(on(event::CleanedUp{learner}), "");
  EXPECT_EQ(ended(3, 1), "clean 3");
  EXPECT_EQ(on(event::CleanedUp{3}), "finish SIGTERM");
}

TEST_F(Machine, WithoutRestartOnFailureItsMaximumMeansNothing) {
  for (const ProcessIndex engine : {2U, 3U}) rules.processes[engine].restart = {false, 3, 5s};
  all_ready();
  EXPECT_TRUE(ended(2, 1).starts_with("clean 2, decide failed 2 exited with code 1"));
}

TEST_F(Machine, WhatAProcessLeavesLivesOnWhereThatIsWantedWhileTheRunGoesOn) {
  for (auto& process : rules.processes) process.leave = true;
  all_ready();
  EXPECT_EQ(ended(0), "clean 0 but leave");
  EXPECT_TRUE(ended(2, 1).starts_with("clean 2 but leave, decide failed 2"));
  EXPECT_EQ(ended(1, 1), "clean 1, SIGINT to group 3, grace 3 5s");
}

TEST_F(Machine, AThirdInterruptAndWhatComesAfterTheEndChangeNothing) {
  all_ready();
  on(event::Signal{SIGINT});
  EXPECT_EQ(on(event::Signal{SIGINT}), "kill all");
  EXPECT_EQ(on(event::Signal{SIGINT}), "");
  EXPECT_EQ(on(event::Signal{SIGQUIT}), "");
  EXPECT_EQ(on(event::GuardianLost{}), "");
  for (const ProcessIndex process : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(on(event::Ended{process, sys::WaitStatus(SIGKILL)}), fmt::format("clean {}", process));
    EXPECT_EQ(on(event::CleanedUp{process}), process < 3 ? "" : "finish SIGINT");
  }
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM}) EXPECT_EQ(on(event::Signal{signal}), "") << signal;
  EXPECT_EQ(on(event::GuardianLost{}), "");
  EXPECT_EQ(on(event::Abort{"too late", 70}), "");
}

TEST_F(Machine, QuitKillsAtOnce) {
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGQUIT}), "decide SIGQUIT, kill all");
  all_ready();
  on(event::Signal{SIGTERM});
  EXPECT_EQ(on(event::Signal{SIGQUIT}), "kill all");
  EXPECT_TRUE(std::holds_alternative<StoppedBySignal>(std::get<Killing>(state.phase).cause));
  EXPECT_EQ(std::get<StoppedBySignal>(std::get<Killing>(state.phase).cause).signal, SIGTERM);
}

TEST_F(Machine, AnInterruptBetweenOtherReasonsIsTheFirstOne) {
  all_ready();
  ended(0, 3);
  EXPECT_EQ(on(event::Signal{SIGINT}), "");
  EXPECT_EQ(on(event::Signal{SIGINT}), "kill all");
  EXPECT_TRUE(std::holds_alternative<ProcessFailed>(std::get<Killing>(state.phase).cause));
}

TEST_F(Machine, KilledBeforeAllAreStartedItWaitsForThoseThatAre) {
  start();
  on(event::Started{2});
  EXPECT_EQ(on(event::GuardianLost{}), "decide guardian gone, kill all");
  EXPECT_EQ(on(event::Started{3}), "") << "it is not to be started any more";
  EXPECT_EQ(on(event::Ended{2, sys::WaitStatus(SIGKILL)}), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "finish guardian gone");
}

TEST_F(Machine, AwayFromTheWalltimeLearnersGetTheSignalOfTheirRole) {
  rules.walltime = true;
  for (const ProcessIndex learner : {0U, 1U}) rules.processes[learner].walltime_signal = SIGUSR1;
  all_ready();
  EXPECT_TRUE(ended(0, 3).ends_with("SIGTERM to group 1, grace 1 1m"));
  rules.processes[1].walltime_signal.reset();
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGUSR2}),
            "decide walltime, SIGUSR1 to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
}

TEST_F(Machine, ASignalThatIsForwardedToNobodyInParticularReachesAllThatRun) {
  rules.signals[SIGUSR1] = {SignalRule::Action::forward, {}};
  EXPECT_EQ(start(), "start 2, start 3");
  EXPECT_EQ(on(event::Signal{SIGUSR1}), "") << "none is started";
  on(event::Started{2});
  EXPECT_EQ(on(event::Signal{SIGUSR1}), "SIGUSR1 to 2");
  all_ready();
  EXPECT_EQ(on(event::Signal{SIGUSR1}), "SIGUSR1 to 0, SIGUSR1 to 1, SIGUSR1 to 2, SIGUSR1 to 3");
  ended(1, 1);
  EXPECT_EQ(on(event::Signal{SIGUSR1}), "SIGUSR1 to 0, SIGUSR1 to 2, SIGUSR1 to 3") << "0 is being stopped";
}

TEST_F(Machine, WhatThisMachineNeverRedirects) {
  for (const int signal : {SIGINT, SIGQUIT, stop_signal()}) {
    rules.signals[signal] = {SignalRule::Action::ignore, {}};
    const auto cause = cause_of(rules, signal);
    ASSERT_TRUE(cause) << signal;
    EXPECT_EQ(std::get<StoppedBySignal>(*cause).signal, signal);
    all_ready();
    EXPECT_TRUE(on(event::Signal{signal}).starts_with("decide " + sys::signal_name(signal))) << signal;
  }
}

TEST_F(Machine, ALostNodeLeavesWhatWasNotStartedThere) {
  start();
  on(event::Started{2});
  on(event::Started{3});
  EXPECT_EQ(on(event::NodeLost{"node1", "no answer", {1, 3}}),
            "decide lost node1, SIGINT to group 2, grace 2 5s");
  EXPECT_TRUE(std::holds_alternative<Waiting>(state.processes[1].phase));
  EXPECT_TRUE(std::holds_alternative<Ended>(state.processes[3].phase));
  EXPECT_EQ(ended(2), "clean 2");
  EXPECT_EQ(on(event::CleanedUp{2}), "finish lost node1");
}

TEST_F(Machine, AnAbortSaysWhoseFaultItIs) {
  all_ready();
  on(event::Abort{"wrong libnccl", 73, 2});
  const auto& aborted = std::get<Aborted>(std::get<Ending>(state.phase).cause);
  EXPECT_EQ(aborted.exit_code, 73);
  EXPECT_EQ(aborted.process, 2U);
}

TEST_F(Machine, EventsOfOneThatIsElsewhereInItsLifeChangeNothing) {
  start();
  EXPECT_EQ(on(event::Ready{2}), "") << "not started yet";
  EXPECT_EQ(on(event::ReadyTimeout{2}), "");
  EXPECT_EQ(on(event::CleanedUp{2}), "");
  EXPECT_EQ(on(event::BackoffOver{2}), "");
  EXPECT_EQ(ended(0), "") << "its stage is to come";
  on(event::Started{2});
  EXPECT_EQ(on(event::Started{2}), "");
  EXPECT_EQ(on(event::SpawnFailed{2, "too late"}), "");
  EXPECT_TRUE(std::holds_alternative<Going>(state.phase));
}

TEST_F(Machine, LateEventsChangeNothing) {
  all_ready();
  ended(0, 3);
  EXPECT_EQ(on(event::Ready{0}), "");
  EXPECT_EQ(on(event::GraceOver{0}), "");
  EXPECT_EQ(ended(0, 3), "");
  EXPECT_EQ(on(event::ReadyTimeout{2}), "");
}

}  // namespace
}  // namespace nlaunch::supervise
