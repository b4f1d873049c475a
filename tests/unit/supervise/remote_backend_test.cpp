#include "supervise/remote_backend.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "unit/run_until.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

/// Two nodes with a learner each.
class Remote : public testing::Test {
 protected:
  Remote() {
    plan_.roles.emplace_back().name = "learner";
    for (std::uint32_t node = 0; node < 2; ++node) {
      plan::Process process;
      process.index = process.node = node;
      plan_.processes.push_back(process);
    }
    plan_.node.count = 2;
    rules_ = rules_of(plan_);
    begin(RemoteBackend::kForTheEnd);
  }

  void begin(Duration for_the_end) {
    backend_ = std::make_unique<RemoteBackend>(
        loop_, plan_, rules_,
        RemoteBackend::Options{
            .hosts = {"node0", "node1"},
            .send = [this](std::uint32_t node,
                           const NodeCommand& command) { sent_.emplace_back(node, command); },
            .tell =
                [this](const ProcessEvent& process_event) {
                  told_.push_back(process_event.what);
                  at_.push_back(process_event.at);
                },
            .recover = [this](std::uint32_t node) { recovered_.push_back(node); },
            .release = [this](std::uint32_t node) { released_.push_back(node); },
            .for_the_end = for_the_end});
  }

  void say(std::uint32_t node, Duration at, process_event::Ended ended) {
    backend_->on_event(node, {at, ended});
  }

  [[nodiscard]] ProcessIndex ended(std::size_t at) const {
    return std::get<process_event::Ended>(told_[at]).process;
  }

  plan::Plan plan_;
  Rules rules_;
  sys::Loop loop_;
  std::vector<std::pair<std::uint32_t, NodeCommand>> sent_;
  std::vector<decltype(ProcessEvent::what)> told_;
  std::vector<Duration> at_;
  std::vector<std::uint32_t> recovered_, released_;
  std::unique_ptr<RemoteBackend> backend_;
};

TEST_F(Remote, AnActionGoesToTheNodeOfItsProcess) {
  backend_->perform(action::Start{1});
  backend_->perform(action::KillAll{});
  ASSERT_EQ(sent_.size(), 3);
  const auto action = [this](std::size_t at) {
    return std::get<node_command::Perform>(sent_[at].second).action;
  };
  EXPECT_EQ(sent_[0].first, 1);
  EXPECT_EQ(std::get<action::Start>(action(0)).process, 1);
  for (const std::uint32_t node : {0U, 1U}) {
    EXPECT_EQ(sent_[1 + node].first, node);
    EXPECT_TRUE(std::holds_alternative<action::KillAll>(action(1 + node)));
  }
}

TEST_F(Remote, FailuresAreToldInTheOrderInWhichTheyHappened) {
  // The clocks of the nodes are told apart by what came before: both began with this backend.
  backend_->on_event(0, {0ms, process_event::Started{0, 10}});
  backend_->on_event(1, {0ms, process_event::Started{1, 11}});
  std::this_thread::sleep_for(100ms);
  say(1, 90ms, {1, sys::WaitStatus(SIGSEGV)});
  say(0, 70ms, {0, sys::WaitStatus::exited(1)});
  run_until(loop_, [&] { return told_.size() == 4; });
  EXPECT_EQ(ended(2), 0);
  EXPECT_EQ(ended(3), 1);
}

TEST_F(Remote, ACrashComesBeforeAnExitWhereClocksCannotTell) {
  for (const Duration apart : {4ms, 40ms}) {
    told_.clear();
    say(0, 1000ms, {0, sys::WaitStatus(1 << 8)});
    backend_->on_event(1, {1000ms, process_event::Ready{1}});  // sets its clock
    say(1, 1000ms + apart, {1, sys::WaitStatus(SIGSEGV)});
    run_until(loop_, [&] { return told_.size() == 3; });
    EXPECT_EQ(ended(1), apart < 10ms ? 1 : 0) << apart.count();
  }
}

TEST_F(Remote, AKilledProcessComesFirstWhateverTheClocksSay) {
  say(0, 1000ms, {0, sys::WaitStatus(1 << 8)});
  backend_->on_event(1, {1000ms, process_event::Ready{1}});  // sets its clock
  say(1, 1060ms, {1, sys::WaitStatus(SIGKILL)});
  run_until(loop_, [&] { return told_.size() == 3; });
  EXPECT_EQ(ended(1), 1);
  EXPECT_EQ(ended(2), 0);
}

TEST_F(Remote, ALostNodeIsToldBeforeWhatItBroughtAbout) {
  say(0, 10ms, {0, sys::WaitStatus::exited(1)});
  backend_->lose(1, "no answer");
  run_until(loop_, [&] { return told_.size() == 2; });
  EXPECT_EQ(std::get<process_event::NodeLost>(told_[0]).host, "node1");
  EXPECT_EQ(ended(1), 0);
}

TEST_F(Remote, TheEndIsThereWhenEveryNodeHasSaidSoOrIsLost) {
  std::optional<BackendEnd> end;
  backend_->finish(0, [&](BackendEnd all) { end = std::move(all); });
  ASSERT_EQ(sent_.size(), 2);
  EXPECT_EQ(std::get<node_command::Finish>(sent_[0].second).of, 0);
  backend_->on_end(0, {{"python (pid 5)"}, {}, {"last words"}, 7});
  EXPECT_FALSE(end);
  backend_->lose(1, "no answer");
  run_until(loop_, [&] { return end.has_value(); });
  EXPECT_EQ(end->left_behind, (std::vector<std::string>{"python (pid 5)"}));
  EXPECT_EQ(end->last_lines, (std::vector<std::string>{"last words"}));
  EXPECT_EQ(end->lost_bytes, 7);
}

TEST_F(Remote, ALostNodeIsToldNothing) {
  backend_->lose(1, "no answer");
  backend_->perform(action::Start{1});
  backend_->ending();
  ASSERT_EQ(sent_.size(), 1);
  EXPECT_EQ(sent_[0].first, 0);
}

TEST_F(Remote, TimesAreThoseOfTheLeaderByTheFastestMessage) {
  std::this_thread::sleep_for(30ms);
  backend_->on_event(0, {100s, process_event::Ready{0}});
  ASSERT_EQ(at_.size(), 1U);
  EXPECT_GE(at_[0], 30ms) << "it is told at once, and was now";
  EXPECT_LE(at_[0], 10s);
  // One that was on its way for long does not put the clock wrong, and one that was fast puts it right.
  backend_->on_event(0, {90s, process_event::Ready{0}});
  EXPECT_EQ(at_[1], at_[0] - 10s);
  backend_->on_event(0, {200s, process_event::Ready{0}});
  EXPECT_LE(at_[2], 10s);
  backend_->on_event(0, {190s, process_event::Ready{0}});
  EXPECT_EQ(at_[3], at_[2] - 10s);
  backend_->on_event(1, {7s, process_event::Ready{1}});
  EXPECT_LE(at_[4], 6s) << "each node has a clock of its own";
}

TEST_F(Remote, OnlyFailuresAndSignalsAreHeld) {
  say(0, 10ms, {0, sys::WaitStatus::exited(0)});
  backend_->on_event(1, {10ms, process_event::Started{1, 11}});
  ASSERT_EQ(told_.size(), 2U);
  backend_->on_event(0, {10ms, process_event::Signal{SIGTERM}});
  say(1, 10ms, {1, sys::WaitStatus::exited(3)});
  EXPECT_EQ(told_.size(), 2U);
  run_until(loop_, [&] { return told_.size() == 4; });
  say(0, 20ms, {0, sys::WaitStatus::exited(4)});
  EXPECT_EQ(told_.size(), 4U) << "the next ones as well";
  run_until(loop_, [&] { return told_.size() == 5; });
}

TEST_F(Remote, TenMillisecondsApartClocksStillTell) {
  const auto order_of = [this](Duration apart) {
    told_.clear();
    backend_->on_event(0, {1h, process_event::Ready{0}});  // of one clock, that is set
    say(0, 1000ms, {0, sys::WaitStatus::exited(1)});
    say(0, 1000ms + apart, {1, sys::WaitStatus(SIGSEGV)});
    say(0, 1000ms + apart, {2, sys::WaitStatus::exited(1)});
    run_until(loop_, [&] { return told_.size() == 4; });
    return std::vector<ProcessIndex>{ended(1), ended(2), ended(3)};
  };
  EXPECT_EQ(order_of(10ms), (std::vector<ProcessIndex>{1, 0, 2}));
  EXPECT_EQ(order_of(11ms), (std::vector<ProcessIndex>{0, 1, 2}));
}

TEST_F(Remote, ALostNodeIsToldOnceWithItsProcessesAndNotWhatItSaidLast) {
  say(1, 10ms, {1, sys::WaitStatus::exited(1)});
  backend_->on_event(1, {10ms, process_event::Signal{SIGTERM}});
  say(0, 10ms, {0, sys::WaitStatus::exited(2)});
  backend_->lose(1, "no answer for 30s");
  backend_->lose(1, "again");
  ASSERT_EQ(told_.size(), 1U);
  const auto& lost = std::get<process_event::NodeLost>(told_[0]);
  EXPECT_EQ(lost.host, "node1");
  EXPECT_EQ(lost.why, "no answer for 30s");
  EXPECT_EQ(lost.processes, std::vector<ProcessIndex>{1});
  run_until(loop_, [&] { return told_.size() == 3; });
  std::size_t signals = 0;
  for (const auto& what : told_) signals += std::holds_alternative<process_event::Signal>(what) ? 1 : 0;
  EXPECT_EQ(signals, 1U) << "a signal was for the run";
}

TEST_F(Remote, WhatIsHeldOfALostNodeAloneIsTakenBack) {
  say(1, 10ms, {1, sys::WaitStatus::exited(1)});
  backend_->lose(1, "no answer");
  loop_.after(200ms, [this] { loop_.stop(); });
  loop_.run();
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(Remote, ANodeWhoseEndHasComeMayGo) {
  backend_->on_end(1, {});
  backend_->lose(1, "it has ended");
  EXPECT_EQ(told_.size(), 0U);
  backend_->lose(0, "no answer");
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(Remote, TheEndIsThatOfAllNodesTogether) {
  std::vector<BackendEnd> ends;
  const auto keep = [&](BackendEnd end) { ends.push_back(std::move(end)); };
  BackendEnd first;
  first.left_behind = {"a"};
  first.survivors = {"b"};
  first.lost_bytes = 3;
  first.log_when_decided = {{"learner.0", 10}};
  first.oom_kills = 1;
  auto second = first;
  second.left_behind = {"c"};
  second.survivors = {"d"};
  second.last_lines = {"last words"};
  second.log_when_decided = {{"learner.1", 20}};
  backend_->on_end(0, first);
  backend_->finish({}, keep);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_FALSE(std::get<node_command::Finish>(sent_[1].second).of);
  backend_->on_end(1, second);
  EXPECT_TRUE(ends.empty()) << "not from within the call";
  run_until(loop_, [&] { return ends.size() == 1; });
  EXPECT_EQ(ends[0].left_behind, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(ends[0].survivors, (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(ends[0].last_lines, std::vector<std::string>{"last words"});
  EXPECT_EQ(ends[0].lost_bytes, 6U);
  EXPECT_EQ(ends[0].oom_kills, 2U);
  EXPECT_EQ(ends[0].log_when_decided,
            (std::map<std::string, std::uint64_t>{{"learner.0", 10}, {"learner.1", 20}}));
}

TEST_F(Remote, WhereAllAreLostTheEndIsThereAtOnce) {
  for (const std::uint32_t node : {0U, 1U}) backend_->lose(node, "no answer");
  int ended = 0;
  backend_->finish(0, [&](const BackendEnd&) { ++ended; });
  EXPECT_EQ(ended, 0);
  run_until(loop_, [&] { return ended == 1; });
  EXPECT_TRUE(sent_.empty());
}

TEST_F(Remote, OfThoseThatDoNotTellTheirEndEachIsNamed) {
  begin(50ms);
  std::optional<BackendEnd> end;
  const auto keep = [&](BackendEnd all) { end = std::move(all); };
  backend_->on_end(0, {{}, {"python (pid 5) on node0"}, {}, 7});
  backend_->finish({}, keep);
  run_until(loop_, [&] { return end.has_value(); });
  EXPECT_EQ(end->survivors,
            (std::vector<std::string>{"python (pid 5) on node0",
                                      "node1 did not confirm that nothing is left running there"}));
  EXPECT_EQ(end->lost_bytes, 7U);

  begin(50ms);
  end.reset();
  backend_->lose(0, "no answer");
  backend_->finish({}, keep);
  run_until(loop_, [&] { return end.has_value(); });
  EXPECT_EQ(end->survivors,
            std::vector<std::string>{"node1 did not confirm that nothing is left running there"});
}

TEST_F(Remote, TheEndingIsToldToAll) {
  backend_->ending();
  ASSERT_EQ(sent_.size(), 2U);
  for (const auto& [node, command] : sent_)
    EXPECT_TRUE(std::holds_alternative<node_command::Ending>(command));
}

TEST_F(Remote, OnceItIsGoneNothingIsTold) {
  say(0, 10ms, {0, sys::WaitStatus::exited(1)});
  bool ended = false;
  backend_->finish(0, [&](const BackendEnd&) { ended = true; });
  backend_.reset();
  loop_.after(200ms, [this] { loop_.stop(); });
  loop_.run();
  EXPECT_TRUE(told_.empty());
  EXPECT_FALSE(ended);
}

TEST_F(Remote, ANodeMayTakeThePlaceOfOneThatIsLost) {
  backend_->recover({1});
  EXPECT_EQ(recovered_, std::vector<std::uint32_t>{1});
  backend_->lose(1, "no answer");
  backend_->perform(action::Start{1});
  EXPECT_TRUE(sent_.empty());
  backend_->rejoin(1, "node5");
  ASSERT_EQ(told_.size(), 2U);
  const auto& back = std::get<process_event::NodeBack>(told_[1]);
  EXPECT_EQ(back.host, "node5");
  EXPECT_EQ(back.processes, std::vector<ProcessIndex>{1});
  backend_->perform(action::Start{1});
  ASSERT_EQ(sent_.size(), 1U);
  // Its clock is another one.
  std::this_thread::sleep_for(20ms);
  backend_->on_event(1, {0ms, process_event::Started{1, 11}});
  EXPECT_GE(at_.back(), 20ms);
  backend_->lose(1, "no answer");
  EXPECT_EQ(std::get<process_event::NodeLost>(told_.back()).host, "node5");
}

TEST_F(Remote, WhoWaitsForAllNodesDoesNotWaitForOneThatIsLost) {
  backend_->lose(1, "no answer");
  backend_->perform(action::Collect{"/evidence"});
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_EQ(std::get<process_event::Collected>(told_.back()).trouble, "node node1 is lost");
}

TEST_F(Remote, OnceItEndsNobodyTakesAPlace) {
  EXPECT_FALSE(backend_->is_ending());
  backend_->ending();
  EXPECT_TRUE(backend_->is_ending());
}

TEST_F(Remote, ANodeThatIsLeftIsLostWithoutAWord) {
  backend_->release({1});
  EXPECT_EQ(released_, std::vector<std::uint32_t>{1});
  backend_->lose(1, "the connection to its agent was closed");
  EXPECT_TRUE(told_.empty());
  backend_->perform(action::Start{1});
  EXPECT_TRUE(sent_.empty());
  backend_->rejoin(1, "node5");
  EXPECT_EQ(std::get<process_event::NodeBack>(told_.at(0)).host, "node5");
}

}  // namespace
}  // namespace nlaunch::supervise
