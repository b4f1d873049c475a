#include "supervise/outcome.h"

#include <gtest/gtest.h>

#include <csignal>

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
  EXPECT_EQ(exit_code(outcome_of(GuardianGone{})), 70);
  EXPECT_EQ(exit_code(outcome_of(Aborted{"stalled", 124})), 124);
}

TEST(Sentence, SaysWhoWhenHowAndHowLongBeforeTheNext) {
  auto outcome = outcome_of(ProcessFailed{0, sys::WaitStatus(SIGSEGV)});
  outcome.first = 0;
  EXPECT_EQ(sentence(outcome), "learner.0 was ended by SIGSEGV after 12.4s");
  outcome.next = 1;
  outcome.processes[0].ended = 12400ms;
  outcome.processes[1].ended = 12480ms;
  outcome.processes[1].status = sys::WaitStatus::exited(1);
  EXPECT_EQ(sentence(outcome),
            "learner.0 was ended by SIGSEGV after 12.4s, 80ms before engine.0 exited with code 1");
}

TEST(Sentence, OfAServerThatHasLostAPart) {
  auto outcome =
      outcome_of(PartLost{1, "VLLM::EngineCore (pid 7) of engine.0 was killed by SIGKILL 7.4s into the run"});
  outcome.first = 1;
  EXPECT_EQ(sentence(outcome),
            "VLLM::EngineCore (pid 7) of engine.0 was killed by SIGKILL 7.4s into the run, and engine.0 did "
            "not end "
            "within 5.0s");
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
            "the kernel's OOM killer was at work: the job's memory cgroup counted 2 such kills while the run "
            "went on; "
            "`dmesg -T` on the node has the sizes");
}

TEST(Advice, IsGivenForASigkillThatNlaunchDidNotSend) {
  EXPECT_EQ(advice(outcome_of(ProcessFailed{0, sys::WaitStatus(SIGKILL)})),
            "nlaunch did not send this SIGKILL: the kernel's OOM killer is the usual cause; `dmesg -T` or "
            "`journalctl -k` on the node tell");
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

}  // namespace
}  // namespace nlaunch::supervise
