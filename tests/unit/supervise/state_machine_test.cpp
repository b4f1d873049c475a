#include "supervise/state_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/text.h"
#include "supervise/outcome.h"
#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

/// An action as a word, so that a whole step reads as one line.
struct Describe {
  std::string operator()(const action::Start& a) const { return fmt::format("start {}", a.process); }
  std::string operator()(const action::AwaitReady& a) const { return fmt::format("await {}", a.process); }
  std::string operator()(const action::Watch& a) const { return fmt::format("watch {}", a.process); }
  std::string operator()(const action::ForgetRestart& a) const {
    return fmt::format("forget {} {}", a.process, format_duration(a.after));
  }
  std::string operator()(const action::Tolerate& a) const {
    std::vector<std::string> names;
    for (const auto process : a.processes) names.push_back(std::to_string(process));
    return fmt::format("without {} ({}), {} left", text::join(names, "+"), cause(a.cause), a.left);
  }
  std::string operator()(const action::SignalGroup& a) const {
    return fmt::format("{} to group {}", sys::signal_name(a.signal), a.process);
  }
  std::string operator()(const action::SignalProcess& a) const {
    return fmt::format("{} to {}", sys::signal_name(a.signal), a.process);
  }
  std::string operator()(const action::ArmGrace& a) const {
    return fmt::format("grace {} {}", a.process, format_duration(a.grace));
  }
  std::string operator()(const action::KillTree& a) const { return fmt::format("kill {}", a.process); }
  std::string operator()(const action::KillAll&) const { return "kill all"; }
  std::string operator()(const action::CleanUp& a) const {
    return fmt::format("clean {}{}", a.process, a.leave ? " but leave" : "");
  }
  std::string operator()(const action::ArmBackoff& a) const {
    return fmt::format("backoff {} {}", a.process, format_duration(a.backoff));
  }
  std::string operator()(const action::Decide& a) const { return "decide " + cause(a.cause); }
  std::string operator()(const action::Finish& a) const { return "finish " + cause(a.cause); }

  static std::string cause(const Cause& cause) {
    struct Name {
      std::string operator()(const Finished&) const { return "finished"; }
      std::string operator()(const ProcessFailed& c) const {
        return fmt::format("failed {} {}", c.process, c.status.str());
      }
      std::string operator()(const StartFailed& c) const { return fmt::format("not started {}", c.process); }
      std::string operator()(const NeverReady& c) const {
        return fmt::format("{} {}", c.has_ended ? "ended unready" : "not ready", c.process);
      }
      std::string operator()(const PartLost& c) const { return fmt::format("lost a part {}", c.process); }
      std::string operator()(const Unresponsive& c) const {
        return fmt::format("silent {}: {}", c.process, c.reason);
      }
      std::string operator()(const StoppedBySignal& c) const { return sys::signal_name(c.signal); }
      std::string operator()(const GuardianGone&) const { return "guardian gone"; }
      std::string operator()(const WalltimeNear&) const { return "walltime"; }
      std::string operator()(const NodeLost& c) const { return "lost " + c.host; }
      std::string operator()(const Aborted& c) const { return "aborted: " + c.reason; }
    };
    return std::visit(Name{}, cause);
  }
};

using Ready = ProcessRules::Ready;

/// Learners 0 and 1 wait for engines 2 and 3, which have a readiness check.
class Machine : public ::testing::Test {
 protected:
  Machine() {
    const ProcessRules learner{.process = 0, .role = "learner", .stop = {SIGTERM, 60s}, .ends_run = true};
    const ProcessRules engine{.process = 0, .role = "engine", .ready = Ready::checked, .stop = {SIGINT, 5s}};
    rules.processes = {learner, learner, engine, engine};
    rules.stages = {{2, 3}, {0, 1}};
  }

  std::string take(Step step) {
    state = std::move(step.state);
    std::vector<std::string> words;
    for (const auto& action : step.actions) words.push_back(std::visit(Describe{}, action));
    return text::join(words, ", ");
  }
  std::string start() { return take(begin(rules)); }
  std::string on(const Event& event) { return take(step(rules, state, event)); }
  std::string ended(ProcessIndex process, int code = 0) {
    return on(event::Ended{process, sys::WaitStatus::exited(code)});
  }
  /// To the point where all are ready.
  void all_ready() {
    start();
    for (const ProcessIndex engine : {2U, 3U}) {
      on(event::Started{engine});
      on(event::Ready{engine});
    }
    for (const ProcessIndex learner : {0U, 1U}) on(event::Started{learner});
  }

  Rules rules;
  State state;
};

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
            "clean 2, decide failed 2 was ended by SIGSEGV, "
            "SIGTERM to group 0, grace 0 1m, SIGTERM to group 1, grace 1 1m");
  EXPECT_EQ(ended(0, 3), "clean 0");
  EXPECT_EQ(on(event::GraceOver{1}), "kill 1");
  EXPECT_EQ(on(event::Ended{1, sys::WaitStatus(SIGKILL)}), "clean 1, SIGINT to group 3, grace 3 5s");
  EXPECT_EQ(ended(3), "clean 3");
  for (const ProcessIndex process : {0U, 1U, 2U}) EXPECT_EQ(on(event::CleanedUp{process}), "");
  EXPECT_EQ(on(event::CleanedUp{3}), "finish failed 2 was ended by SIGSEGV");
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

TEST_F(Tolerant, WhatDoesNotAnswerIsKilledAndLost) {
  EXPECT_EQ(on(event::Unresponsive{4, "silence"}), "without 4 (silent 4: silence), 2 left, kill 4");
  EXPECT_EQ(on(event::Ended{4, sys::WaitStatus(SIGKILL)}), "clean 4");
  on(event::CleanedUp{4});
  ended(0);
  EXPECT_EQ(ended(1).substr(0, 26), "clean 1, decide finished, ");
}

TEST_F(Tolerant, ANodeWithTolerableProcessesIsLostAlone) {
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "without 4 (lost n2), 2 left");
  EXPECT_EQ(on(event::NodeLost{"n1", "gone", {3}}).substr(0, 14), "decide lost n1");
}

TEST_F(Machine, WhatIsLostBeforeItsTurnIsNotStarted) {
  rules.processes.push_back(rules.processes[3]);
  rules.stages = {{0}, {2, 3, 4}, {1}};
  for (const ProcessIndex engine : {2U, 3U, 4U}) rules.processes[engine].tolerate = 2;
  EXPECT_EQ(start(), "start 0");
  EXPECT_EQ(on(event::NodeLost{"n2", "gone", {4}}), "without 4 (lost n2), 2 left");
  EXPECT_EQ(on(event::Started{0}), "start 2, start 3");
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

}  // namespace
}  // namespace nlaunch::supervise
