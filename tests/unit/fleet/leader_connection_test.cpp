#include "fleet/leader_connection.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fleet/admission.h"
#include "unit/run_until.h"

namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class Meeting : public testing::Test {
 protected:
  void open() {
    admission_ = AdmissionServer::open(loop_, 0, {"the token", "the plan", 2, {{"id", "run"}}},
                                       {[this](AdmissionServer::AdmittedAgent agent_connection) {
                                          agent_connection.channel->set({});
                                          agent_connection.channel->send("at once");
                                          admitted_.push_back(std::move(agent_connection));
                                        },
                                        [this](const std::string& why) { strangers_.push_back(why); },
                                        [this](const std::string& why) { misfits_.push_back(why); }})
                     .value();
  }
  void visit(const std::string& token, const std::string& plan, std::uint32_t node) {
    connection_ = std::make_unique<LeaderConnection>(
        loop_, LeaderConnection::Options{{"127.0.0.1"}, admission_->port(), token, plan, node, 5s},
        [](const sys::Channel&) {
          return json{{"host", "n1"}};
        },
        [this](LeaderConnection::End end) {
          end_ = std::move(end);
          ended_ = true;
          if (end_.channel) end_.channel->set({.line = [this](auto line) { heard_ = line; }, .closed = {}});
        });
    run_until(loop_, [this] { return ended_; });
  }

  sys::Loop loop_;
  std::unique_ptr<AdmissionServer> admission_;
  std::unique_ptr<LeaderConnection> connection_;
  LeaderConnection::End end_;
  bool ended_ = false;
  std::string heard_;
  std::vector<AdmissionServer::AdmittedAgent> admitted_;
  std::vector<std::string> strangers_, misfits_;
};

TEST_F(Meeting, WhoIsLetInMissesNothingOfWhatIsSaidAtOnce) {
  open();
  visit("the token", "the plan", 1);
  ASSERT_TRUE(end_.channel) << end_.why;
  EXPECT_EQ(end_.assignment, (json{{"id", "run"}}));
  run_until(loop_, [this] { return !heard_.empty(); });
  EXPECT_EQ(heard_, "at once");
  ASSERT_EQ(admitted_.size(), 1U);
  EXPECT_EQ(admitted_[0].node, 1U);
  EXPECT_EQ(admitted_[0].hello.at("host"), "n1");
}

TEST_F(Meeting, AnotherTokenIsRefusedAndSaidOnBothSides) {
  open();
  visit("a token", "the plan", 1);
  EXPECT_EQ(end_.why, "nlaunch at 127.0.0.1 refused this node: it has another token");
  EXPECT_TRUE(end_.refused);
  EXPECT_EQ(strangers_,
            (std::vector<std::string>{"somebody at 127.0.0.1 does not know the token, and was refused"}));
}

TEST_F(Meeting, AnotherPlanAndANodeOutsideOfItAreRefusedAndSaidOnBothSides) {
  open();
  visit("the token", "its own", 1);
  EXPECT_EQ(end_.why, "refused: n1 has another plan (its own) than the one who decides (the plan)");
  ended_ = false;
  visit("the token", "the plan", 2);
  EXPECT_EQ(end_.why, "refused: n1 says that it is node 2 of a plan that has 2");
  EXPECT_EQ(misfits_.size(), 2U);
}

TEST_F(Meeting, OneWhoOnlySaysThatItIsOursIsNot) {
  auto listener = sys::Listener::open(loop_, [this](std::unique_ptr<sys::Channel> channel) {
    auto* raw = channel.get();
    raw->set(
        {.line = [raw](auto) { raw->send(R"({"says":"{\"welcome\":{}}","proof":"00"})"); }, .closed = {}});
    raw->send(R"({"challenge":"x"})");
    admitted_.push_back({0, {}, std::move(channel)});
  });
  ASSERT_TRUE(listener);
  connection_ = std::make_unique<LeaderConnection>(
      loop_, LeaderConnection::Options{{"127.0.0.1"}, (*listener)->port(), "the token", "the plan", 1, 5s},
      [](const sys::Channel&) { return json::object(); },
      [this](LeaderConnection::End end) {
        end_ = std::move(end);
        ended_ = true;
      });
  run_until(loop_, [this] { return ended_; });
  EXPECT_EQ(end_.why, "who answers at 127.0.0.1 does not know the token");
}

}  // namespace
}  // namespace nlaunch::fleet
