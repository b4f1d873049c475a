#include "preflight/ask/remote_probes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nlaunch::preflight {
namespace {

using Lines = std::vector<std::string>;

/// Three ranks on two nodes.
class ProbesOfNodes : public testing::Test {
 protected:
  ProbesOfNodes() {
    ranks_.resize(3);
    ranks_[2].node = 1;
  }
  void start(const std::vector<std::string>& lost) {
    probes_ = std::make_unique<RemoteProbes>(
        loop_, lost,
        [this](std::uint32_t node, const ProbeCommand& command) { sent_.emplace_back(node, command); },
        RemoteProbes::Options{ranks_, wanted_, "/folder", 7});
    probes_->start([this](const ProbeNews& news) {
      const auto* said = std::get_if<probe_news::Said>(&news.what);
      const auto* gone = std::get_if<probe_news::Lost>(&news.what);
      told_.push_back(fmt::format("{} {}", news.rank, said ? said->line : gone ? gone->why : "ended"));
    });
  }

  sys::Loop loop_;
  std::vector<Rank> ranks_;
  std::vector<std::size_t> wanted_{0, 1, 2};
  std::vector<std::pair<std::uint32_t, ProbeCommand>> sent_;
  Lines told_;
  std::unique_ptr<RemoteProbes> probes_;
};

TEST_F(ProbesOfNodes, EachNodeStartsItsOwn) {
  start({"", ""});
  ASSERT_EQ(sent_.size(), 2);
  const auto& first = std::get<probe_command::Start>(sent_[0].second);
  EXPECT_EQ(first.wanted, (std::vector<std::size_t>{0, 1}));
  const auto& second = std::get<probe_command::Start>(sent_[1].second);
  EXPECT_EQ(sent_[1].first, 1);
  EXPECT_EQ(second.run, 7);
  EXPECT_EQ(second.first, 2);
  EXPECT_EQ(second.wanted, (std::vector<std::size_t>{2}));
  EXPECT_EQ(second.folder, "/folder");
}

TEST_F(ProbesOfNodes, ALineGoesToTheNodeOfItsRank) {
  start({"", ""});
  sent_.clear();
  probes_->say(2, "begin");
  ASSERT_EQ(sent_.size(), 1);
  EXPECT_EQ(sent_[0].first, 1);
  EXPECT_EQ(std::get<probe_command::Say>(sent_[0].second).line, "begin");
}

TEST_F(ProbesOfNodes, NewsOfEarlierProbesAndOfNoRankIsNothing) {
  start({"", ""});
  probes_->on_news(6, {0, probe_news::Said{"old"}});
  probes_->on_news(7, {3, probe_news::Said{"of nobody"}});
  probes_->on_news(7, {0, probe_news::Said{"new"}});
  EXPECT_EQ(told_, (Lines{"0 new"}));
}

TEST_F(ProbesOfNodes, ThoseOfALostNodeAreLostUnlessTheyHadEnded) {
  start({"", ""});
  probes_->on_news(7, {0, probe_news::Ended{"exited"}});
  probes_->lose(0, "no answer");
  EXPECT_EQ(told_, (Lines{"0 ended", "1 no answer"}));
  sent_.clear();
  probes_->say(1, "begin");
  probes_->kill();
  ASSERT_EQ(sent_.size(), 1) << "a lost node is told nothing";
  EXPECT_EQ(sent_[0].first, 1);
}

TEST_F(ProbesOfNodes, ANodeThatIsLostBeforeIsNotAsked) {
  start({"", "gone before"});
  EXPECT_EQ(sent_.size(), 1);
  EXPECT_EQ(told_, (Lines{"2 gone before"}));
}

TEST_F(ProbesOfNodes, ANodeWithNothingToStartIsNotAsked) {
  wanted_ = {2};
  start({"", ""});
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].first, 1U);
  probes_->lose(0, "no answer");
  EXPECT_EQ(told_, Lines{}) << "nothing was running there";
}

TEST_F(ProbesOfNodes, TheFirstRankOfANodeIsToldWhateverIsWanted) {
  wanted_ = {1};
  start({"", ""});
  EXPECT_EQ(std::get<probe_command::Start>(sent_.at(0).second).first, 0U);
  EXPECT_EQ(std::get<probe_command::Start>(sent_[0].second).wanted, std::vector<std::size_t>{1});
}

TEST_F(ProbesOfNodes, WhatHasBeenSaidEndsNothing) {
  start({"", ""});
  probes_->on_news(7, {1, probe_news::Said{"line"}});
  probes_->on_news(7, {0, probe_news::Stuck{"state D"}});
  probes_->lose(0, "no answer");
  EXPECT_EQ(told_, (Lines{"1 line", "0 ended", "1 no answer"}));
}

TEST_F(ProbesOfNodes, EachNodeIsToldToEndThem) {
  start({"", ""});
  sent_.clear();
  probes_->kill();
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<probe_command::Kill>(sent_[0].second));
  EXPECT_EQ(sent_[1].first, 1U);
}

}  // namespace
}  // namespace nlaunch::preflight
