#include "fleet/sealed_channel.h"

#include <gtest/gtest.h>

#include "unit/run_until.h"

namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// Both ends of a connection; what the agent's end says is kept.
class Sealed : public testing::Test {
 protected:
  Sealed() {
    listener_ = sys::Listener::open(loop_, [this](auto channel) { near_ = std::move(channel); }).value();
    connecting_ =
        std::make_unique<sys::Connecting>(loop_, std::vector<std::string>{"127.0.0.1"}, listener_->port(), 5s,
                                          [this](auto channel, const auto&) { far_ = std::move(channel); });
    run_until(loop_, [this] { return near_ && far_; });
  }

  void seal() {
    leader_ = std::make_unique<SealedChannel>(loop_, std::move(near_), key(launch::End::leader));
    leader_->set({.message = [this](std::string_view text) { said_.emplace_back(text); },
                  .closed = [this](const std::string& why) { closed_ = why; }});
    agent_ = std::make_unique<SealedChannel>(loop_, std::move(far_), key(launch::End::agent));
    agent_->set({});
  }
  static SealedChannel::Key key(launch::End end) { return {end, "token", "of the leader", "of the agent"}; }

  sys::Loop loop_;
  std::unique_ptr<sys::Listener> listener_;
  std::unique_ptr<sys::Connecting> connecting_;
  std::unique_ptr<sys::Channel> near_, far_;
  std::unique_ptr<SealedChannel> leader_, agent_;
  std::vector<std::string> said_;
  std::string closed_;
};

TEST_F(Sealed, QueuedMessagesOfATurnShareALine) {
  std::vector<std::string> lines;
  near_->set({.line = [&](std::string_view line) { lines.emplace_back(line); }, .closed = {}});
  agent_ = std::make_unique<SealedChannel>(loop_, std::move(far_), key(launch::End::agent));
  agent_->queue("one");
  agent_->queue("two");
  run_until(loop_, [&] { return lines.size() == 1; });
  agent_->queue("three");
  run_until(loop_, [&] { return lines.size() == 2; });
  launch::LineProof proof(launch::End::agent, "token", "of the leader", "of the agent");
  EXPECT_EQ(lines[0], proof.next("one\x1etwo") + " one\x1etwo");
  EXPECT_EQ(lines[1], proof.next("three") + " three");
}

TEST_F(Sealed, AllArriveInOrder) {
  seal();
  std::vector<std::string> wanted;
  const std::string large(3U << 19U, 'x');  // more than what is collected for one line
  for (int i = 0; i < 5; ++i) {
    for (const auto& text : {std::string("small"), large, std::to_string(i)}) wanted.push_back(text);
  }
  for (const auto& text : wanted) agent_->queue(text);
  run_until(loop_, [&] { return said_.size() == wanted.size(); });
  EXPECT_EQ(said_, wanted);
}

TEST_F(Sealed, WhatWasSaidLastArrivesBeforeTheEnd) {
  seal();
  agent_->queue("one");
  agent_->queue("two");
  agent_.reset();
  run_until(loop_, [this] { return !closed_.empty(); });
  EXPECT_EQ(said_, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(closed_, "was closed");
}

TEST_F(Sealed, WhatIsSentNeedsNoLoop) {
  std::string line;
  near_->set({.line = [&](std::string_view text) { line = text; }, .closed = {}});
  agent_ = std::make_unique<SealedChannel>(loop_, std::move(far_), key(launch::End::agent));
  agent_->queue("one");
  EXPECT_FALSE(near_->waiting());
  agent_->send("two");
  EXPECT_TRUE(near_->waiting());
  run_until(loop_, [&] { return line.ends_with(" one\x1etwo"); });
}

TEST_F(Sealed, TheRestOfALineGoesToTheHandlersThatReplacedTheFirst) {
  seal();
  std::vector<std::string> second;
  leader_->set({.message =
                    [&](std::string_view text) {
                      said_.emplace_back(text);
                      leader_->set({.message = [&](std::string_view then) { second.emplace_back(then); },
                                    .closed = {}});
                    },
                .closed = {}});
  for (const auto* text : {"one", "two", "three"}) agent_->queue(text);
  run_until(loop_, [&] { return second.size() == 2; });
  EXPECT_EQ(said_, (std::vector<std::string>{"one"}));
  EXPECT_EQ(second, (std::vector<std::string>{"two", "three"}));
}

TEST_F(Sealed, AHandlerMayDestroyTheChannel) {
  seal();
  leader_->set({.message =
                    [this](std::string_view text) {
                      said_.emplace_back(text);
                      leader_.reset();
                    },
                .closed = [this](const std::string& why) { closed_ = why; }});
  for (const auto* text : {"one", "two"}) agent_->queue(text);
  run_until(loop_, [this] { return leader_ == nullptr; });
  EXPECT_EQ(said_, (std::vector<std::string>{"one"}));
  EXPECT_EQ(closed_, "");
}

TEST_F(Sealed, AHandlerMayQueueAndDestroyTheChannelAndGoOn) {
  seal();
  leader_->set({.message =
                    [this](std::string_view text) {
                      said_.emplace_back(text);
                      leader_->queue("an answer");
                      leader_.reset();
                      loop_.after(50ms, [this] { loop_.stop(); });
                      loop_.run();
                    },
                .closed = {}});
  agent_->send("one");
  run_until(loop_, [this] { return leader_ == nullptr; });
  EXPECT_EQ(said_, (std::vector<std::string>{"one"}));
}

TEST_F(Sealed, ALineOfSomebodyElseEndsTheConnection) {
  auto leader = std::make_unique<SealedChannel>(loop_, std::move(near_), key(launch::End::leader));
  leader->set({.message = [this](std::string_view text) { said_.emplace_back(text); },
               .closed = [this](const std::string& why) { closed_ = why; }});
  launch::LineProof proof(launch::End::agent, "token", "of the leader", "of the agent");
  far_->send(proof.next("one\x1etwo") + " one\x1etwo");
  far_->send(proof.next("three") + " three\x1e" + "four");
  far_->send(proof.next("five") + " five");
  run_until(loop_, [this] { return !closed_.empty(); });
  EXPECT_EQ(said_, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(closed_, "carried an unsigned line");
}

}  // namespace
}  // namespace nlaunch::fleet
