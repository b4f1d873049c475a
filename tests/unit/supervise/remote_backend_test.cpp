#include "supervise/remote_backend.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "supervise/wire.h"
#include "unit/run_until.h"

namespace nlaunch::supervise {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// Two nodes with a learner each; their agents are the far ends of two real connections.
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
    listener_ =
        sys::Listener::open(loop_, [this](auto channel) { near_.push_back(std::move(channel)); }).value();
    for (int i = 0; i < 2; ++i) connect();
    backend_ = std::make_unique<RemoteBackend>(
        loop_, plan_, rules_,
        std::vector<RemoteBackend::Node>{{"node0", near_[0].get()}, {"node1", near_[1].get()}},
        [this](const ProcessEvent& process_event) { told_.push_back(to_message(process_event)); });
  }

  void connect() {
    sys::Connecting connecting(loop_, {"127.0.0.1"}, listener_->port(), 5s,
                               [this](auto channel, const auto&) { far_.push_back(std::move(channel)); });
    const auto wanted = near_.size() + 1;
    run_until(loop_, [&] { return near_.size() == wanted && far_.size() == wanted; });
    far_.back()->set({.line =
                          [this, who = far_.size() - 1](std::string_view line) {
                            heard_.push_back(std::to_string(who) + " " + std::string(line));
                          },
                      .closed = {}});
  }

  void say(std::uint32_t node, Duration at, process_event::Ended ended) {
    backend_->hear(node, to_message(ProcessEvent{at, ended}));
  }

  plan::Plan plan_;
  Rules rules_;
  sys::Loop loop_;
  std::unique_ptr<sys::Listener> listener_;
  std::vector<std::unique_ptr<sys::Channel>> near_, far_;
  std::vector<std::string> heard_;
  std::vector<json> told_;
  std::unique_ptr<RemoteBackend> backend_;
};

TEST_F(Remote, AnActionGoesToTheNodeOfItsProcess) {
  backend_->perform(action::Start{1});
  backend_->perform(action::KillAll{});
  run_until(loop_, [&] { return heard_.size() == 3; });
  std::ranges::sort(heard_);
  EXPECT_EQ(heard_, (std::vector<std::string>{R"(0 {"do":"kill-all"})", R"(1 {"do":"kill-all"})",
                                              R"(1 {"do":"start","process":1})"}));
}

TEST_F(Remote, FailuresAreToldInTheOrderInWhichTheyHappened) {
  // The clocks of the nodes are told apart by what came before: both began with this crew.
  backend_->hear(0, to_message(ProcessEvent{0ms, process_event::Started{0, 10}}));
  backend_->hear(1, to_message(ProcessEvent{0ms, process_event::Started{1, 11}}));
  std::this_thread::sleep_for(100ms);
  say(1, 90ms, {1, sys::WaitStatus(SIGSEGV)});
  say(0, 70ms, {0, sys::WaitStatus::exited(1)});
  run_until(loop_, [&] { return told_.size() == 4; });
  EXPECT_EQ(told_[2].at("process"), 0);
  EXPECT_EQ(told_[3].at("process"), 1);
}

TEST_F(Remote, WhoWasKilledComesBeforeWhoGaveUpWhereClocksCannotTell) {
  for (const Duration apart : {4ms, 40ms}) {
    told_.clear();
    say(0, 1000ms, {0, sys::WaitStatus(1 << 8)});
    backend_->hear(1, to_message(ProcessEvent{1000ms, process_event::Ready{1}}));  // sets its clock
    say(1, 1000ms + apart, {1, sys::WaitStatus(SIGKILL)});
    run_until(loop_, [&] { return told_.size() == 3; });
    EXPECT_EQ(told_[1]["process"], apart < 10ms ? 1 : 0) << apart.count();
  }
}

TEST_F(Remote, ALostNodeIsToldBeforeWhatItBroughtAbout) {
  say(0, 10ms, {0, sys::WaitStatus::exited(1)});
  backend_->lose(1, "no answer");
  run_until(loop_, [&] { return told_.size() == 2; });
  EXPECT_EQ(told_[0].at("notice"), "node-lost");
  EXPECT_EQ(told_[0].at("host"), "node1");
  EXPECT_EQ(told_[1].at("notice"), "ended");
}

TEST_F(Remote, TheEndIsThereWhenEveryNodeHasSaidSoOrIsLost) {
  std::optional<BackendEnd> end;
  backend_->finish(0, [&](BackendEnd all) { end = std::move(all); });
  run_until(loop_, [&] { return heard_.size() == 2; });
  EXPECT_EQ(heard_[0].substr(2), R"({"finish":0})");
  backend_->hear(0, {{"end", to_message(BackendEnd{{"python (pid 5)"}, {}, {"last words"}, 7})}});
  EXPECT_FALSE(end);
  backend_->lose(1, "no answer");
  run_until(loop_, [&] { return end.has_value(); });
  EXPECT_EQ(end->left_behind, (std::vector<std::string>{"python (pid 5)"}));
  EXPECT_EQ(end->last_lines, (std::vector<std::string>{"last words"}));
  EXPECT_EQ(end->lost_bytes, 7);
}

TEST_F(Remote, ANodeThatSaysNonsenseIsLost) {
  backend_->hear(1, {{"notice", "dance"}, {"at_ms", 1}});
  ASSERT_EQ(told_.size(), 1);
  EXPECT_EQ(told_[0].at("host"), "node1");
}

}  // namespace
}  // namespace nlaunch::supervise
