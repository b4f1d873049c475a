#include "fleet/relay.h"

#include <gtest/gtest.h>

#include <thread>

#include "fleet/leader_connection.h"
#include "unit/run_until.h"

/// A relay, and agents that connect to it, over real sockets of this machine.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    relay_ =
        Relay::open(loop_, {}, {"the token", "the plan", 8, {{"id", "/id", "/id/attempt-0"}, true, false}},
                    {.up = [this](const std::string& text) { up_.push_back(text); },
                     .output = [this](std::string_view line) { output_.emplace_back(line); },
                     .empty = [this] { ++emptied_; }})
            .value();
  }
  [[nodiscard]] LeaderConnection::Options way(std::uint32_t node) const {
    return {{"127.0.0.1"}, relay_->port(), "the token", "the plan", node, 5s};
  }
  /// Returns what the agent of this node hears.
  Lines& come(std::uint32_t node) {
    auto& agent = agents_[node];
    agent.connection = std::make_unique<LeaderConnection>(
        loop_, way(node),
        [node](const sys::Channel&) { return message::Hello{.host = fmt::format("n{}", node), .ports = {}}; },
        [&agent](LeaderConnection::End end) {
          agent.channel = std::move(end.channel);
          agent.channel->set(
              {.message = [&agent](auto text) { agent.heard.emplace_back(text); }, .closed = {}});
        });
    const auto before = up_.size();
    run_until(loop_, [&] { return agent.channel && up_.size() > before; });
    return agent.heard;
  }

  struct One {
    std::unique_ptr<LeaderConnection> connection;
    std::unique_ptr<SealedChannel> channel;
    Lines heard;
  };
  sys::Loop loop_;
  std::unique_ptr<Relay> relay_;
  std::map<std::uint32_t, One> agents_;
  Lines up_, output_;
  int emptied_ = 0;
};

TEST_F(RelayTest, WhoArrivesIsAnnouncedWithItsHello) {
  come(3);
  ASSERT_EQ(up_.size(), 1U);
  const auto read = read_address(up_[0]);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->address.to, Address::To::arrival);
  EXPECT_EQ(read->address.node, 3U);
  EXPECT_EQ(std::get<message::Hello>(decode(read->text).value()).host, "n3");
  EXPECT_FALSE(relay_->is_empty());
}

TEST_F(RelayTest, MessagesReachTheirNodeAndTheLeader) {
  const auto& third = come(3);
  const auto& fourth = come(4);
  relay_->down({Address::To::node, 3}, "{for 3}");
  relay_->down({Address::To::node, 7}, "{for none}");
  relay_->down({Address::To::all}, "{for all}");
  run_until(loop_, [&] { return third.size() == 2 && fourth.size() == 1; });
  EXPECT_EQ(third, (Lines{"{for 3}", "* {for all}"}));
  EXPECT_EQ(fourth, (Lines{"* {for all}"}));
  up_.clear();
  agents_[4].channel->send("{from 4}");
  run_until(loop_, [&] { return !up_.empty(); });
  EXPECT_EQ(up_, (Lines{"4 {from 4}"}));
}

TEST_F(RelayTest, ANodeBelowARelayBelowIsReachedThroughThatOne) {
  const auto& third = come(3);
  up_.clear();
  agents_[3].channel->send("7 {before it arrives}");
  agents_[3].channel->send("+7 {its hello}");
  agents_[3].channel->send("7 {from 7}");
  run_until(loop_, [&] { return up_.size() == 2; });
  EXPECT_EQ(up_, (Lines{"+7 {its hello}", "7 {from 7}"}));
  relay_->down({Address::To::node, 7}, "{for 7}");
  run_until(loop_, [&] { return !third.empty(); });
  EXPECT_EQ(third, (Lines{"7 {for 7}"}));
}

TEST_F(RelayTest, WhoLeavesIsReportedAndWhoIsBelowItMayReturn) {
  come(3);
  agents_[3].channel->send("+7 {its hello}");
  run_until(loop_, [&] { return up_.size() == 2; });
  up_.clear();
  agents_[3].channel.reset();
  run_until(loop_, [&] { return emptied_ == 1; });
  EXPECT_EQ(up_, (Lines{"3 " + encode(message::Gone{"was closed", false}),
                        "7 " + encode(message::Gone{"was closed", true})}));
  EXPECT_TRUE(relay_->is_empty());
}

TEST_F(RelayTest, AnAgentThatConnectsAgainReplacesItsConnection) {
  come(3);
  const auto first = std::move(agents_[3]);
  agents_.erase(3);
  up_.clear();
  const auto& heard = come(3);
  ASSERT_EQ(up_.size(), 2U);
  EXPECT_EQ(up_[0], "3 " + encode(message::Gone{"was replaced", true}));
  relay_->down({Address::To::node, 3}, "{for 3}");
  run_until(loop_, [&] { return !heard.empty(); });
  EXPECT_EQ(heard, (Lines{"{for 3}"}));
  EXPECT_EQ(emptied_, 0) << "there was always one";
}

TEST_F(RelayTest, ASecondAgentOfANodeIsLeftToTheLeader) {
  const auto& first = come(3);
  bool closed = false;
  std::unique_ptr<SealedChannel> channel;
  const LeaderConnection second(
      loop_, way(3), [](const sys::Channel&) { return message::Hello{.ports = {}, .agent = "another"}; },
      [&](LeaderConnection::End end) {
        channel = std::move(end.channel);
        channel->set({.message = {}, .closed = [&](const std::string&) { closed = true; }});
      });
  run_until(loop_, [&] { return closed; });
  EXPECT_EQ(up_.size(), 1U) << "only the first is announced";
  relay_->down({Address::To::node, 3}, "{for 3}");
  run_until(loop_, [&] { return !first.empty(); });
}

TEST_F(RelayTest, OutputIsPassedOnByLine) {
  const auto fd = [&] {
    sys::UniqueFd made;
    std::thread other([&] { made = connect_output("127.0.0.1", way(3)); });
    run_until(loop_, [&] { return !relay_->is_empty(); });
    other.join();
    return made;
  }();
  ASSERT_TRUE(sys::write_all(fd.get(), "learner.3 | one\nlearner.3 | two\n"));
  run_until(loop_, [&] { return output_.size() == 2; });
  EXPECT_EQ(output_, (Lines{"learner.3 | one", "learner.3 | two"}));
}

TEST_F(RelayTest, WhoDoesNotKnowTheTokenIsNotAnnounced) {
  std::optional<std::string> why;
  auto other = way(3);
  other.token = "another token";
  const LeaderConnection connection(
      loop_, other, [](const sys::Channel&) { return message::Hello{}; },
      [&](const LeaderConnection::End& end) { why = end.why; });
  run_until(loop_, [&] { return why.has_value(); });
  EXPECT_EQ(*why, "nlaunch at 127.0.0.1 refused this node: it has a different token");
  EXPECT_EQ(up_, Lines{});
  EXPECT_TRUE(relay_->is_empty());
}

}  // namespace
}  // namespace nlaunch::fleet
