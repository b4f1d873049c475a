#include "supervise/outcome.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

Outcome outcome_of(Cause cause) {
  Outcome outcome;
  outcome.cause = std::move(cause);
  outcome.processes.resize(2);
  outcome.processes[0].name = "learner.0";
  outcome.processes[1].name = "engine.0";
  outcome.decided = 12400ms;
  outcome.took = 15s;
  return outcome;
}

TEST(ExitCode, IsThatOfTheProcessThatFailedFirst) {
  EXPECT_EQ(exit_code(outcome_of(ProcessFailed{0, sys::WaitStatus::exited(9)})), 9);
  EXPECT_EQ(exit_code(outcome_of(ProcessFailed{0, sys::WaitStatus(SIGKILL)})), 137);
  EXPECT_EQ(exit_code(outcome_of(ProcessFailed{1, sys::WaitStatus::exited(0)})), 1);
}

TEST(ExitCode, OfWhatEndsARunOtherwise) {
  EXPECT_EQ(exit_code(outcome_of(Finished{})), 0);
  EXPECT_EQ(exit_code(outcome_of(StartFailed{})), 127);
  EXPECT_EQ(exit_code(outcome_of(NeverReady{})), 72);
  EXPECT_EQ(exit_code(outcome_of(StoppedBySignal{SIGINT})), 130);
  EXPECT_EQ(exit_code(outcome_of(StoppedBySignal{stop_signal()})), 130);
  EXPECT_EQ(exit_code(outcome_of(StoppedBySignal{SIGTERM})), 143);
  EXPECT_EQ(exit_code(outcome_of(StoppedBySignal{SIGQUIT})), 131);
  EXPECT_EQ(exit_code(outcome_of(WalltimeNear{})), 75);
  EXPECT_EQ(exit_code(outcome_of(NodeLost{"node1", "no answer"})), 137);
  EXPECT_EQ(exit_code(outcome_of(GuardianGone{})), 70);
  EXPECT_EQ(exit_code(outcome_of(Aborted{"stalled", 124})), 124);
}

TEST(Sentence, SaysWhoWhenHowAndHowLongBeforeTheNext) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus(SIGSEGV)});
  outcome.first = 0;
  EXPECT_EQ(sentence(outcome), "learner.0 was terminated by SIGSEGV after 12.4s");
  outcome.next = 1;
  outcome.processes[0].ended = 12400ms;
  outcome.processes[1].ended = 12480ms;
  outcome.processes[1].status = sys::WaitStatus::exited(1);
  EXPECT_EQ(sentence(outcome),
            "learner.0 was terminated by SIGSEGV after 12.4s, 80ms before engine.0 exited with code 1");
}

TEST(Sentence, OfAServerThatHasLostAPart) {
  auto outcome =
      outcome_of(PartLost{1, "VLLM::EngineCore (pid 7) of engine.0 was killed by SIGKILL 7.4s into the run"});
  outcome.first = 1;
  EXPECT_EQ(sentence(outcome),
            "VLLM::EngineCore (pid 7) of engine.0 was killed by SIGKILL 7.4s into the run, and engine.0 did "
            "not exit within 5.0s");
  EXPECT_EQ(exit_code(outcome), 1);
  EXPECT_EQ(name_of(outcome.cause), "failed");
}

ChildReport child(sys::WaitStatus status, Duration at) {
  return {{7, "VLLM::EngineCore"}, status, at};
}

TEST(LostChild, ExplainsTheEndThatFollows) {
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(0)});
  outcome.first = 1;
  outcome.processes[1].ended = 12400ms;
  outcome.processes[1].children = {child(sys::WaitStatus::exited(0), 1s),
                                   child(sys::WaitStatus(SIGKILL), 10s)};
  EXPECT_EQ(sentence(outcome),
            "engine.0 exited with code 0 but was expected to keep running, after 12.4s; before that, "
            "VLLM::EngineCore (pid 7) of engine.0 was killed by SIGKILL 10.0s into the run");
  const auto summary = to_json(outcome);
  EXPECT_EQ(summary["lost_child"]["process"], "engine.0");
  EXPECT_EQ(summary["lost_child"]["end"]["signal"], "SIGKILL");
}

TEST(LostChild, IsNoneThatWasAskedToEndOrFailedByItselfOrLater) {
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(1)});
  outcome.processes[1].ended = 12400ms;
  for (const auto& other : {child(sys::WaitStatus(SIGTERM), 10s), child(sys::WaitStatus::exited(1), 10s),
                            child(sys::WaitStatus(SIGKILL), 13s)}) {
    outcome.processes[1].children = {other};
    EXPECT_FALSE(lost_child(outcome)) << other.status->str();
  }
  outcome.processes[1].children = {child(sys::WaitStatus::exited(1), 9s),
                                   child(sys::WaitStatus(SIGKILL), 10s)};
  EXPECT_FALSE(lost_child(outcome)) << "another one had failed before";
}

TEST(LostChild, IsAPartThatEndedInGoodOrderWhileItsServerWentOn) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus::exited(1)});
  outcome.first = 0;
  auto& server = outcome.processes[1];
  ChildReport helper{{8, "dashboard.py"}, sys::WaitStatus(SIGKILL), 11900ms};
  ChildReport part{{7, "raylet"}, sys::WaitStatus::exited(0), 12s};
  server.children = {helper, part};
  EXPECT_EQ(
      sentence(outcome),
      "learner.0 exited with code 1 after 12.4s; before that, raylet (pid 7) of engine.0 exited with code 0 "
      "12.0s into the run");
  EXPECT_TRUE(lost_child(outcome)->says_nothing());
  server.ended = 12300ms;
  server.status = sys::WaitStatus::exited(1);
  EXPECT_EQ(lost_child(outcome)->child->child.title, "dashboard.py")
      << "a server that ends itself ends its parts";
}

TEST(Advice, NamesTheKernelWhereItCounted) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus(SIGKILL)});
  outcome.oom_kills = 2;
  EXPECT_EQ(advice(outcome),
            "the kernel's OOM killer was active: the job's memory cgroup counted 2 OOM kills during the run; "
            "`dmesg -T` on the node shows the sizes");
}

TEST(Advice, IsGivenForASigkillThatNlaunchDidNotSend) {
  EXPECT_EQ(advice(outcome_of(ProcessFailed{0, sys::WaitStatus(SIGKILL)})),
            "nlaunch did not send this SIGKILL; the usual cause is the kernel's OOM killer: check `dmesg -T` "
            "or `journalctl -k` on the node");
  EXPECT_EQ(advice(outcome_of(ProcessFailed{0, sys::WaitStatus(SIGTERM)})), "");
  EXPECT_EQ(advice(outcome_of(Finished{})), "");
}

TEST(Sentence, OfWhatEndsARunOtherwise) {
  auto outcome = outcome_of(NeverReady{1});
  outcome.first = 1;
  outcome.not_ready = "http://n1:8000/health: Connection refused";
  EXPECT_EQ(sentence(outcome), "engine.0 was not ready in time (http://n1:8000/health: Connection refused)");
  outcome.cause = NeverReady{1, true};
  outcome.processes[1].started = 10s;
  EXPECT_EQ(sentence(outcome),
            "engine.0 exited with code 0 after 2.4s, 12.4s into the run, before it was ready");
  EXPECT_EQ(sentence(outcome_of(StoppedBySignal{SIGTERM})), "stopped by SIGTERM after 12.4s");
  EXPECT_EQ(sentence(outcome_of(StoppedBySignal{stop_signal()})), "stopped by `nlaunch stop` after 12.4s");
  EXPECT_EQ(sentence(outcome_of(Aborted{"engine.0 has the learner's libnccl", 70})),
            "engine.0 has the learner's libnccl (12.4s into the run)");
}

TEST(NameOf, EachCauseHasOne) {
  const std::pair<Cause, const char*> kCases[] = {
      {Finished{}, "finished"},
      {ProcessFailed{}, "failed"},
      {StartFailed{}, "not-started"},
      {NeverReady{}, "not-ready"},
      {PartLost{}, "failed"},
      {StoppedBySignal{SIGINT}, "interrupted"},
      {StoppedBySignal{SIGQUIT}, "interrupted"},
      {StoppedBySignal{stop_signal()}, "interrupted"},
      {StoppedBySignal{SIGTERM}, "terminated"},
      {StoppedBySignal{SIGHUP}, "terminated"},
      {GuardianGone{}, "killed"},
      {WalltimeNear{}, "walltime"},
      {NodeLost{}, "node-lost"},
      {Aborted{"", 124}, "stalled"},
      {Aborted{"", 73}, "aborted"},
  };
  for (const auto& [cause, name] : kCases) EXPECT_EQ(name_of(cause), name);
}

TEST(InSeconds, OneIsTheFirstThatIsSaidInSeconds) {
  const std::pair<Duration, const char*> kCases[] = {
      {0ms, "0ms"},     {80ms, "80ms"},     {999ms, "999ms"},       {1000ms, "1.0s"},
      {1060ms, "1.1s"}, {12400ms, "12.4s"}, {1000000ms, "1000.0s"},
  };
  for (const auto& [duration, text] : kCases) EXPECT_EQ(in_seconds(duration), text);
}

TEST(Sentence, OfEveryOtherCause) {
  EXPECT_EQ(sentence(outcome_of(Finished{})), "finished after 12.4s");
  EXPECT_EQ(sentence(outcome_of(GuardianGone{})), "nlaunch was killed after 12.4s");
  EXPECT_EQ(sentence(outcome_of(WalltimeNear{})), "stopped after 12.4s because the walltime is near");
  EXPECT_EQ(sentence(outcome_of(NodeLost{"node1", "no answer for 30s"})),
            "node node1 was lost after 12.4s: no answer for 30s");
  auto outcome = outcome_of(StartFailed{1, "cannot start 'vllm': No such file or directory"});
  outcome.first = 1;
  EXPECT_EQ(sentence(outcome), "engine.0: cannot start 'vllm': No such file or directory");
  outcome = outcome_of(Finished{});
  outcome.decided.reset();
  EXPECT_EQ(sentence(outcome), "finished after 15.0s");
}

TEST(Sentence, OnSeveralNodesItSaysTheRankAndTheNode) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus::exited(3)});
  outcome.first = 0;
  outcome.next = 1;
  outcome.processes[0].host = "node0";
  outcome.processes[0].rank = 0;
  outcome.processes[0].ended = 12400ms;
  outcome.processes[1].host = "node1";
  outcome.processes[1].ended = 14400ms;
  outcome.processes[1].status = sys::WaitStatus(SIGTERM);
  EXPECT_EQ(sentence(outcome),
            "learner.0 (rank 0) on node0 exited with code 3 after 12.4s, 2.0s before engine.0 on node1 was "
            "terminated by SIGTERM");
  outcome.processes[0].host.clear();
  EXPECT_TRUE(sentence(outcome).starts_with("learner.0 exited with code 3 after 12.4s, "))
      << sentence(outcome);
}

TEST(Sentence, TheTimeOfAProcessIsItsOwnWhereItWasStartedLater) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus::exited(3)});
  outcome.first = 0;
  outcome.processes[0].started = 999ms;
  EXPECT_EQ(sentence(outcome), "learner.0 exited with code 3 after 12.4s");
  outcome.processes[0].started = 1000ms;
  EXPECT_EQ(sentence(outcome), "learner.0 exited with code 3 after 11.4s, 12.4s into the run");
  outcome.processes[0].started = 12s;
  EXPECT_EQ(sentence(outcome), "learner.0 exited with code 3 after 400ms, 12.4s into the run");
  outcome.decided.reset();
  EXPECT_EQ(sentence(outcome), "learner.0 exited with code 3 after 3.0s, 15.0s into the run");
}

TEST(Sentence, TheNextIsLeftOutWhereItsEndIsNotKnown) {
  const std::string alone = "learner.0 exited with code 3 after 12.4s";
  auto whole = outcome_of(ProcessFailed{0, sys::WaitStatus::exited(3)});
  whole.first = 0;
  whole.next = 1;
  whole.processes[0].ended = 12400ms;
  whole.processes[1].ended = 12400ms;
  whole.processes[1].status = sys::WaitStatus::exited(1);
  EXPECT_EQ(sentence(whole), alone + ", 0ms before engine.0 exited with code 1");
  for (const auto& take : std::vector<std::function<void(Outcome&)>>{
           [](Outcome& outcome) { outcome.next.reset(); },
           [](Outcome& outcome) { outcome.processes[0].ended.reset(); },
           [](Outcome& outcome) { outcome.processes[1].ended.reset(); },
           [](Outcome& outcome) { outcome.processes[1].status.reset(); }}) {
    auto outcome = whole;
    take(outcome);
    EXPECT_EQ(sentence(outcome), alone);
  }
}

TEST(Sentence, OfAnAbortNamesTheChildThatWasLostBefore) {
  auto outcome = outcome_of(Aborted{"no progress for 600 s", 124});
  outcome.processes[1].children = {child(sys::WaitStatus(SIGKILL), 10s)};
  EXPECT_EQ(
      sentence(outcome),
      "no progress for 600 s (12.4s into the run); before that, VLLM::EngineCore (pid 7) of engine.0 was "
      "killed by SIGKILL 10.0s into the run");
}

TEST(Sentence, OfAnAbortDoesNotNameAChildTwice) {
  const std::string reason =
      "no progress for 60 s: engine.0 is the culprit: it has lost a process: VLLM::EngineCore (pid 7) was "
      "killed by SIGKILL 10.0s into the run";
  auto outcome = outcome_of(Aborted{reason, 124});
  outcome.processes[1].children = {child(sys::WaitStatus(SIGKILL), 10s)};
  EXPECT_EQ(sentence(outcome), reason + " (12.4s into the run)");
}

/// Four ranks of a learner, of which the second exited first with code 1, 100 ms after its exception.
Outcome four_ranks() {
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(1)});
  outcome.processes.assign(4, {});
  for (int rank = 0; rank < 4; ++rank) {
    auto& process = outcome.processes[static_cast<std::size_t>(rank)];
    process.name = "learner." + std::to_string(rank);
    process.rank = rank;
    process.ended = 12500ms;
    process.status = sys::WaitStatus::exited(1);
    process.stopped = rank != 1;
  }
  outcome.first = 1;
  outcome.processes[1].ended = 12400ms;
  outcome.processes[1].exception = Exception{"RuntimeError", "Connection closed by peer", 12300ms};
  return outcome;
}

TEST(FirstToRaise, IsTheRankWhoseExceptionCameBeforeThatOfTheOneThatExitedFirst) {
  auto outcome = four_ranks();
  EXPECT_FALSE(first_to_raise(outcome));
  outcome.processes[3].exception = Exception{"ValueError", "a NaN in the loss\nstep 7", 12050ms};
  outcome.processes[2].exception = Exception{"RuntimeError", "Connection closed by peer", 12200ms};
  EXPECT_EQ(first_to_raise(outcome), 3U);
  outcome.first = 3;
  EXPECT_EQ(
      sentence(outcome),
      "learner.3 raised ValueError 12.1s into the run, 350ms before learner.1 exited with code 1: a NaN in "
      "the loss");
  EXPECT_EQ(exit_code(outcome), 1);
  outcome.processes[3].exception->type.clear();
  outcome.processes[3].exception->message.clear();
  EXPECT_EQ(sentence(outcome),
            "learner.3 raised an exception 12.1s into the run, 350ms before learner.1 exited with code 1");
}

TEST(Sentence, OfAnEarlierExceptionNamesTheLostChildAndTheCrashLoopToo) {
  auto outcome = four_ranks();
  std::get<ProcessFailed>(outcome.cause).alike = 3;
  outcome.processes[3].exception = Exception{"ValueError", "a NaN", 12050ms};
  outcome.processes[0].children = {child(sys::WaitStatus(SIGKILL), 10s)};
  outcome.first = 3;
  const std::string raised =
      "learner.3 raised ValueError 12.1s into the run, 350ms before learner.1 exited with code 1: a NaN; ";
  const std::string killed = "VLLM::EngineCore (pid 7) of learner.0 was killed by SIGKILL ";
  const std::string loop =
      "; crash loop: learner.1 failed the same way 3 times in a row, each time soon after its start, and is "
      "not restarted";
  EXPECT_EQ(sentence(outcome), raised + "before that, " + killed + "10.0s into the run" + loop);
  outcome.processes[0].children = {child(sys::WaitStatus(SIGKILL), 12100ms)};
  EXPECT_EQ(sentence(outcome), raised + killed + "12.1s into the run" + loop);
}

TEST(FirstToRaise, IsNoneThatMayHaveRaisedLater) {
  auto outcome = four_ranks();
  auto& other = outcome.processes[3];
  other.exception = Exception{"ValueError", "", 12300ms};
  EXPECT_FALSE(first_to_raise(outcome)) << "at the same time";
  other.exception->at = 12299ms;
  EXPECT_EQ(first_to_raise(outcome), 3U);
  other.host = "node2";
  EXPECT_FALSE(first_to_raise(outcome)) << "on another node, by another clock";
  other.exception->at = 12289ms;
  EXPECT_EQ(first_to_raise(outcome), 3U);
  other.exception->within = 1s;
  EXPECT_FALSE(first_to_raise(outcome)) << "in whole seconds";
  other.exception->at = 11289ms;
  EXPECT_EQ(first_to_raise(outcome), 3U);
}

TEST(FirstToRaise, OfOneThatLeftNoRecordItsEndIsNotItsFailure) {
  auto outcome = four_ranks();
  outcome.processes[1].exception.reset();
  outcome.processes[3].exception = Exception{"ValueError", "", 7400ms};
  EXPECT_FALSE(first_to_raise(outcome)) << "it may have taken five seconds to exit";
  outcome.processes[3].exception->at = 7399ms;
  EXPECT_EQ(first_to_raise(outcome), 3U);
  outcome.processes[3].name = "critic.0";
  EXPECT_FALSE(first_to_raise(outcome)) << "another program";
  outcome.processes[1].exception = Exception{"RuntimeError", "", 12300ms};
  EXPECT_EQ(first_to_raise(outcome), 3U) << "an exception is compared with an exception";
}

TEST(FirstToRaise, WhatWasKilledOrCrashedFailedByItself) {
  auto outcome = four_ranks();
  outcome.processes[3].exception = Exception{"RuntimeError", "Connection reset by peer", 10s};
  for (const int signal : {SIGKILL, SIGSEGV, SIGTERM, SIGBUS}) {
    outcome.cause = ProcessFailed{1, sys::WaitStatus(signal)};
    EXPECT_FALSE(first_to_raise(outcome)) << signal;
  }
  outcome.cause = ProcessFailed{1, sys::WaitStatus(SIGABRT)};
  EXPECT_EQ(first_to_raise(outcome), 3U) << "aborted by the watchdog";
}

TEST(FirstToRaise, IsNoneThatTheRunGotOver) {
  const auto first = [](const std::function<void(ProcessReport&)>& change) {
    auto outcome = four_ranks();
    outcome.processes[3].exception = Exception{"ValueError", "", 12s};
    change(outcome.processes[3]);
    return first_to_raise(outcome);
  };
  EXPECT_EQ(first([](ProcessReport&) {}), 3U);
  EXPECT_FALSE(first([](ProcessReport& process) { process.status = sys::WaitStatus::exited(0); }));
  EXPECT_FALSE(first([](ProcessReport& process) { process.ended_before = true; })) << "and it restarts";
  EXPECT_FALSE(first([](ProcessReport& process) { process.lost = "the run continues without it"; }));
  EXPECT_FALSE(first([](ProcessReport& process) { process.exception->at = 12400ms - 15min - 1ms; }));
  EXPECT_EQ(first([](ProcessReport& process) { process.exception->at = 12400ms - 15min; }), 3U);
}

TEST(FirstToRaise, ExplainsAStallAndNoOtherEnd) {
  auto outcome = four_ranks();
  outcome.processes[1].exception.reset();
  outcome.processes[3].exception = Exception{"ValueError", "a NaN", 12s};
  for (const auto& cause : {Cause(Finished{}), Cause(StoppedBySignal{SIGTERM}), Cause(Aborted{"libnccl", 73}),
                            Cause(NodeLost{"n1", "no answer"}), Cause(NeverReady{1})}) {
    outcome.cause = cause;
    EXPECT_FALSE(first_to_raise(outcome)) << name_of(cause);
  }
  outcome.cause = Aborted{"no progress for 600 s", 124};
  EXPECT_EQ(first_to_raise(outcome), 3U);
  outcome.first = 3;
  EXPECT_EQ(sentence(outcome),
            "no progress for 600 s (12.4s into the run); learner.3 raised ValueError: a NaN");
  outcome.processes[3].exception->at = 12500ms;
  EXPECT_FALSE(first_to_raise(outcome)) << "that is how it took its stop signal";
  EXPECT_EQ(sentence(outcome), "no progress for 600 s (12.4s into the run)");
}

TEST(Sentence, EndsWithTheExceptionOfTheFirst) {
  auto outcome = four_ranks();
  outcome.processes[1].exception->message = " \n  a\x1b[2Jb  \nmore";
  EXPECT_EQ(sentence(outcome),
            "learner.1 exited with code 1 after 12.4s; learner.1 raised RuntimeError: a\\x1b[2Jb");
  outcome.processes[1].exception->message = std::string(250, 'x');
  EXPECT_TRUE(sentence(outcome).ends_with(": " + std::string(200, 'x') + "...")) << sentence(outcome);
  outcome.processes[1].exception->message.clear();
  EXPECT_TRUE(sentence(outcome).ends_with("; learner.1 raised RuntimeError")) << sentence(outcome);
}

TEST(Summary, HasTheExceptionsThatProcessesRecorded) {
  const auto outcome = four_ranks();
  EXPECT_EQ(json_text(to_json(outcome.processes[1])["exception"]),
            R"({"type":"RuntimeError","message":"Connection closed by peer","raised_ms":12300})");
  EXPECT_FALSE(to_json(outcome.processes[0]).contains("exception"));
}

TEST(EndOfChild, SaysSoWhereNobodyKnowsHow) {
  ProcessReport server;
  server.name = "engine.0";
  server.host = "node1";
  EXPECT_EQ(end_of_child(server, {{7, "VLLM::\x1b"}, std::nullopt, 69700ms}),
            "VLLM::\\x1b (pid 7) of engine.0 on node1 ended 69.7s into the run");
}

/// Whether this child, which ended `before` the run was decided, explains a failure of its server.
bool explains(const std::string& title, std::optional<sys::WaitStatus> status, Duration before = 1s) {
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(1)});
  outcome.first = 1;
  outcome.decided = 20min;
  outcome.processes[1].ended = 20min;
  outcome.processes[1].status = sys::WaitStatus::exited(1);
  outcome.processes[1].children = {{{7, title}, status, 20min - before}};
  return lost_child(outcome).has_value();
}

TEST(LostChild, IsOneThatASignalEndedWhichNobodySendsToAskForTheEnd) {
  for (const std::string title : {"VLLM::EngineCore", "pt_data_worker"}) {
    for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGQUIT, SIGBUS})
      EXPECT_TRUE(explains(title, sys::WaitStatus(signal))) << title << " by " << signal;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
      EXPECT_FALSE(explains(title, sys::WaitStatus(signal))) << title << " by " << signal;
    EXPECT_FALSE(explains(title, sys::WaitStatus::exited(0))) << title;
    EXPECT_FALSE(explains(title, sys::WaitStatus::exited(9))) << title;
    EXPECT_FALSE(explains(title, std::nullopt)) << title;
  }
  EXPECT_FALSE(explains("ray::IDLE", sys::WaitStatus(SIGKILL))) << "its raylet ends it as it likes";
}

TEST(LostChild, EndedWithinAMinuteOrAQuarterOfAnHourWhereTheRunHung) {
  const sys::WaitStatus killed(SIGKILL);
  EXPECT_TRUE(explains("raylet", killed, 0ms));
  EXPECT_TRUE(explains("raylet", killed, 1min));
  EXPECT_FALSE(explains("raylet", killed, 1min + 1ms));
  EXPECT_FALSE(explains("raylet", killed, -1ms)) << "it followed";
  auto outcome = outcome_of(Aborted{"no progress for 600 s", 124});
  outcome.decided = 20min;
  outcome.processes[1].children = {child(killed, 5min)};
  EXPECT_TRUE(lost_child(outcome));
  outcome.processes[1].children = {child(killed, 5min - 1ms)};
  EXPECT_FALSE(lost_child(outcome));
  outcome.decided.reset();
  outcome.took = 20min - 1ms;
  EXPECT_TRUE(lost_child(outcome)) << "without a decision it is the end that counts";
}

TEST(LostChild, IsTheFirstOfSeveralWhicheverProcessHadIt) {
  const sys::WaitStatus killed(SIGKILL);
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(1)});
  outcome.processes[0].children = {{{1, "a"}, killed, 11s}, {{2, "b"}, killed, 9s}, {{3, "c"}, killed, 9s}};
  outcome.processes[1].children = {{{4, "d"}, killed, 10s}};
  auto lost = lost_child(outcome);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->child->child.title, "b");
  EXPECT_EQ(lost->process->name, "learner.0");
  outcome.processes[1].children.push_back({{5, "raylet"}, killed, 12s});
  lost = lost_child(outcome);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->child->child.title, "raylet") << "a part of a server explains more";
  EXPECT_EQ(lost->process->name, "engine.0");
}

TEST(LostChild, OnlyAPartThatItsServerOutlivedMayHaveEndedInGoodOrder) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus::exited(1)});
  auto& server = outcome.processes[1];
  const auto is_lost = [&](const std::string& title, std::optional<sys::WaitStatus> status) {
    server.children = {{{7, title}, status, 12s}};
    return lost_child(outcome).has_value();
  };
  const auto of_all = [&] {
    return std::vector<bool>{is_lost("raylet", sys::WaitStatus::exited(0)),
                             is_lost("raylet", sys::WaitStatus(SIGTERM)), is_lost("raylet", std::nullopt)};
  };
  const std::vector<bool> yes(3, true);
  const std::vector<bool> no(3, false);
  EXPECT_EQ(of_all(), yes) << "it still runs";
  EXPECT_FALSE(is_lost("helper", sys::WaitStatus::exited(0)));
  EXPECT_FALSE(is_lost("helper", sys::WaitStatus(SIGTERM)));
  server.ended = 12401ms;
  server.status = sys::WaitStatus::exited(1);
  EXPECT_EQ(of_all(), yes) << "it ended because of what was decided";
  server.ended = 12400ms;
  EXPECT_EQ(of_all(), no) << "it failed by itself";
  server.status.reset();
  EXPECT_EQ(of_all(), no);
  server.status = sys::WaitStatus::exited(0);
  EXPECT_EQ(of_all(), yes) << "it ended in good order";
}

TEST(LostChild, SaysNothingWhereItHadNoTimeToOrNoReason) {
  const ProcessReport server;
  const auto says_nothing = [&](std::optional<sys::WaitStatus> status) {
    const ChildReport report{{7, "raylet"}, status, 1s};
    return LostChild{&server, &report}.says_nothing();
  };
  EXPECT_TRUE(says_nothing(std::nullopt));
  EXPECT_TRUE(says_nothing(sys::WaitStatus::exited(0)));
  EXPECT_TRUE(says_nothing(sys::WaitStatus(SIGTERM)));
  EXPECT_TRUE(says_nothing(sys::WaitStatus(SIGKILL)));
  EXPECT_FALSE(says_nothing(sys::WaitStatus(SIGSEGV)));
  EXPECT_FALSE(says_nothing(sys::WaitStatus::exited(1)));
}

TEST(Advice, IsGivenForAChildThatWasKilledToo) {
  auto outcome = outcome_of(ProcessFailed{1, sys::WaitStatus::exited(1)});
  outcome.processes[1].children = {child(sys::WaitStatus(SIGKILL), 10s)};
  EXPECT_TRUE(advice(outcome).starts_with("nlaunch did not send this SIGKILL"));
  outcome.oom_kills = 1;
  EXPECT_TRUE(advice(outcome).contains("counted 1 OOM kill during")) << advice(outcome);
  outcome.processes[1].children = {child(sys::WaitStatus(SIGSEGV), 10s)};
  EXPECT_EQ(advice(outcome), "");
  outcome.processes[1].children = {{{7, "VLLM::EngineCore"}, std::nullopt, 10s}};
  ASSERT_TRUE(lost_child(outcome));
  EXPECT_EQ(advice(outcome), "") << "unknown kind of request it ended";
}

TEST(Summary, HasAllOfAnOutcome) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus(SIGSEGV)});
  outcome.first = 0;
  outcome.started_at = "2026-01-31T12:00:00.123Z";
  outcome.ended_at = "2026-01-31T12:00:15.123Z";
  outcome.last_lines = {"loss nan"};
  outcome.left_behind = {"python (pid 8)"};
  outcome.survivors = {"python (pid 9, state D)"};
  outcome.skipped = {3, 300};
  outcome.lost_bytes = 17;
  outcome.oom_kills = 0;
  outcome.troubles = {"the disk is full"};
  auto& learner = outcome.processes[0];
  learner.host = "node0";
  learner.rank = 0;
  learner.program = "train.py";
  learner.pid = 4711;
  learner.started = 100ms;
  learner.ready = 200ms;
  learner.ended = 12400ms;
  learner.status = sys::WaitStatus(SIGSEGV);
  learner.restarts = 2;
  learner.children = {{{7, "raylet\n"}, sys::WaitStatus::exited(3), 12s}};
  learner.left_behind = {"sh (pid 10)"};
  learner.log = "/run/logs/learner.0.log";
  learner.log_when_decided = 99;
  learner.ended_early = "exited with code 0 at step 3 of 40";
  learner.lost = "it hung";
  auto whole = to_json(outcome);
  for (const auto& process : outcome.processes) whole["processes"].push_back(to_json(process));
  EXPECT_EQ(whole, parse_ordered_json(R"JSON({
    "outcome": "failed", "exit_code": 139,
    "what": "learner.0 (rank 0) on node0 was terminated by SIGSEGV after 12.4s", "advice": "",
    "started": "2026-01-31T12:00:00.123Z", "ended": "2026-01-31T12:00:15.123Z", "took_ms": 15000,
    "decided_ms": 12400, "first": "learner.0", "last_lines": ["loss nan"],
    "processes": [
      {"name": "learner.0", "host": "node0", "rank": 0, "program": "train.py", "pid": 4711, "started_ms": 100,
       "ready_ms": 200, "ended_ms": 12400, "end": {"signal": "SIGSEGV"}, "restarts": 2,
       "children": [{"name": "raylet\\n", "pid": 7, "ended_ms": 12000, "end": {"code": 3}}],
       "ended_early": "exited with code 0 at step 3 of 40", "lost": "it hung", "left_behind": ["sh (pid 10)"],
       "last_lines": [], "log": "/run/logs/learner.0.log", "log_when_decided": 99},
      {"name": "engine.0", "host": "", "rank": -1, "program": "", "pid": 0, "started_ms": null,
       "ready_ms": null, "ended_ms": null, "end": null, "restarts": 0, "children": [], "ended_early": "",
       "lost": "", "left_behind": [], "last_lines": [], "log": "", "log_when_decided": null}],
    "left_behind": ["python (pid 8)"], "survivors": ["python (pid 9, state D)"],
    "terminal_skipped": {"lines": 3, "bytes": 300}, "log_bytes_lost": 17, "oom_kills": 0,
    "troubles": ["the disk is full"]})JSON"))
      << json_text(whole, 1);
  outcome.watch = {{"steps", 3}};
  EXPECT_EQ(to_json(outcome)["watch"]["steps"], 3);
  outcome = outcome_of(Finished{});
  outcome.decided.reset();
  const auto summary = to_json(outcome);
  EXPECT_TRUE(summary["first"].is_null());
  EXPECT_TRUE(summary["decided_ms"].is_null());
  EXPECT_FALSE(summary.contains("lost_child"));
}

TEST(Summary, OfALostSupervisor) {
  const auto summary = summary_of_lost_supervisor(sys::WaitStatus(SIGKILL), {"a (pid 1)"}, {"b (pid 2)"});
  EXPECT_EQ(summary["outcome"], "killed");
  EXPECT_EQ(summary["exit_code"], 70);
  EXPECT_EQ(summary["what"], "nlaunch's supervisor was killed by SIGKILL; the guardian ended the run");
  EXPECT_EQ(summary["sentence"], summary["what"]);
  EXPECT_EQ(summary["left_behind"], Json::array({"a (pid 1)"}));
  EXPECT_EQ(summary["survivors"], Json::array({"b (pid 2)"}));
  EXPECT_TRUE(summary.contains("version"));
}

}  // namespace
}  // namespace nlaunch::supervise
