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
    backend_ = std::make_unique<RemoteBackend>(
        loop_, plan_, rules_, std::vector<std::string>{"node0", "node1"},
        [this](std::uint32_t node, const NodeCommand& command) { sent_.emplace_back(node, command); },
        [this](const ProcessEvent& process_event) { told_.push_back(process_event.what); });
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

TEST_F(Remote, WhoWasKilledComesBeforeWhoGaveUpWhereClocksCannotTell) {
  for (const Duration apart : {4ms, 40ms}) {
    told_.clear();
    say(0, 1000ms, {0, sys::WaitStatus(1 << 8)});
    backend_->on_event(1, {1000ms, process_event::Ready{1}});  // sets its clock
    say(1, 1000ms + apart, {1, sys::WaitStatus(SIGKILL)});
    run_until(loop_, [&] { return told_.size() == 3; });
    EXPECT_EQ(ended(1), apart < 10ms ? 1 : 0) << apart.count();
  }
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

}  // namespace
}  // namespace nlaunch::supervise
