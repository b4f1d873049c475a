#include "fleet/agent.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/exit_code.h"
#include "base/text.h"
#include "fleet/admission.h"
#include "unit/fleet/damaged_messages.h"

/// An agent with a leader that says what the test wants, from a thread of this program.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Says its lines once the agent is there, the last of them after `answers` answers, and keeps what the agent
/// says until it is gone.
class FakeLeader {
 public:
  FakeLeader(std::vector<std::string> lines, std::size_t answers, const std::string& plan,
             const fs::path& attempt)
      : thread_([this, lines = std::move(lines), answers, plan, attempt] {
          sys::Loop loop;
          std::unique_ptr<SealedChannel> channel;
          std::size_t said = 0;
          const auto server = AdmissionServer::open(
              loop, {}, {"the token", plan, 2, {{"id", attempt.parent_path(), attempt}, false, false}},
              {[&](AdmissionServer::AdmittedAgent agent) {
                 channel = std::move(agent.channel);
                 const auto next = [&] {
                   const auto known = heard_.size() < answers ? lines.size() - 1 : lines.size();
                   while (said < known) channel->queue(lines[said++]);
                 };
                 channel->set({.message =
                                   [this, next](auto line) {
                                     heard_.emplace_back(line);
                                     next();
                                   },
                               .closed = [&loop](const std::string&) { loop.stop(); }});
                 next();
               },
               [&](const std::string&) { loop.stop(); }, [&](const std::string&) { loop.stop(); }});
          port_.set_value((*server)->port());
          loop.after(20s, [&loop] { loop.stop(); });
          loop.run();
          loop.after(50ms, [&loop] { loop.stop(); });  // a refusal goes out
          loop.run();
        }) {}
  ~FakeLeader() {
    if (thread_.joinable()) thread_.join();
  }
  std::uint16_t port() { return port_.get_future().get(); }
  /// To be asked for when the agent is gone.
  std::vector<std::string> heard() {
    thread_.join();
    return heard_;
  }

 private:
  std::promise<std::uint16_t> port_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

class OneAgent : public testing::Test {
 protected:
  OneAgent() : attempt_(fs::path(testing::TempDir()) / fmt::format("agent-{}/attempt-0", ::getpid())) {
    fs::create_directories(attempt_);
    plan_.name = "test";
    plan_.node.count = 2;
    caller_.console = report::Console({}, [this](std::string_view text) { said_ += text; });
  }
  ~OneAgent() override { fs::remove_all(attempt_.parent_path()); }

  /// The exit code of the agent of node 1, under a leader that says this.
  int run(const std::vector<Message>& messages, std::size_t answers = 0) {
    std::vector<std::string> lines;
    for (const auto& message : messages) lines.push_back(encode(message));
    return run_lines(lines, launch::fingerprint(plan_).value(), answers);
  }
  int run_lines(const std::vector<std::string>& lines, const std::string& plan, std::size_t answers = 0) {
    FakeLeader leader(lines, answers, plan, attempt_);
    int code = 0;
    {
      Agent agent({{{"127.0.0.1"}, leader.port(), "the token", "", 1, 5s}, "n1", "", false}, plan_, caller_,
                  guardian_);
      code = agent.run();
      again_ = agent.wanted_again();
    }
    heard_ = leader.heard();
    return code;
  }

  plan::Plan plan_;
  fs::path attempt_;
  session::Caller caller_;
  std::string said_;
  supervise::GuardianLink guardian_;
  bool again_ = false;
  std::vector<std::string> heard_;
};

TEST_F(OneAgent, LeavesAsItIsTold) {
  EXPECT_EQ(run({message::Bye{69}}), 69);
  EXPECT_FALSE(again_);
  EXPECT_EQ(run({message::Bye{}}), exit_code::ok);
  EXPECT_TRUE(again_);
  EXPECT_EQ(run({message::Bye{69}, message::Bye{}}), 69) << "the first goodbye counts";
  EXPECT_FALSE(again_);
}

TEST_F(OneAgent, AnswersWhatItIsAsked) {
  EXPECT_EQ(run({preflight::ClockQuestion{7}, message::Settle{}, message::Bye{0}}, 2), 0);
  ASSERT_EQ(heard_.size(), 2U);
  EXPECT_EQ(std::get<preflight::ClockAnswer>(decode(heard_[0]).value()).asked, 7);
  EXPECT_TRUE(std::holds_alternative<message::Settled>(decode(heard_[1]).value()));
}

TEST_F(OneAgent, SaysWhyItCannotBind) {
  std::ofstream(attempt_ / "nodes.json") << R"([{"host":"n0","address":"10.0.0.1","ports":[1]}])";
  EXPECT_EQ(run({message::Bind{}, message::Bye{65}}, 1), 65);
  ASSERT_EQ(heard_.size(), 1U);
  const auto answer = std::get<message::NotBound>(decode(heard_[0]).value());
  EXPECT_EQ(answer.sentence, "nodes.json does not have every port of the plan's 2 nodes");
  EXPECT_EQ(answer.exit_code, exit_code::bad_input);
}

TEST_F(OneAgent, HasNothingToDoBeforeItSupervises) {
  const supervise::node_command::Perform kill{supervise::action::KillAll{}};
  EXPECT_EQ(run({kill, supervise::node_command::Ending{}, supervise::node_command::Finish{},
                 preflight::probe_command::Kill{}, message::Bye{0}}),
            0);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(OneAgent, ALeaderThatSaysWhatCannotBeReadIsLost) {
  EXPECT_EQ(run_lines({"nonsense"}, launch::fingerprint(plan_).value()), exit_code::internal);
  EXPECT_EQ(
      said_,
      "nlaunch agent on n1: nlaunch sent an invalid message: it is not JSON; stopping the processes here\n");
  EXPECT_EQ(
      heard_,
      (std::vector<std::string>{encode(message::Lost{"nlaunch sent an invalid message: it is not JSON"})}));
}

TEST_F(OneAgent, ALeaderThatSpeaksAsAnAgentIsLost) {
  EXPECT_EQ(run({message::Settled{}}), exit_code::internal);
  EXPECT_EQ(heard_, (std::vector<std::string>{
                        encode(message::Lost{"nlaunch sent a message that only an agent may send"})}));
}

TEST_F(OneAgent, AFileThatNobodySharesIsRefused) {
  EXPECT_EQ(run({message::Keep{"../../etc/passwd", "x"}}), exit_code::internal);
  EXPECT_EQ(heard_, (std::vector<std::string>{
                        encode(message::Lost{"nlaunch sent an unexpected file '../../etc/passwd'"})}));
}

// Its leader has proved itself, and may still be of another build, or damaged. What asks for a look at the
// machine, or starts programs, is left out.
TEST_F(OneAgent, WhateverALeaderSaysTheAgentEndsWithAReason) {
  DamagedMessages damaged(1, {"look", "start-probes"});
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    auto lines = damaged.next(4);
    // One may let the agent go, with whatever code.
    const bool lets_go =
        std::ranges::any_of(lines, [](const std::string& line) { return line.contains(R"("type":"bye")"); });
    lines.push_back(encode(message::Bye{3}));
    said_.clear();
    const auto code = run_lines(lines, launch::fingerprint(plan_).value());
    EXPECT_TRUE(code == 3 || lets_go || !said_.empty() || !heard_.empty())
        << code << " after " << text::join(lines, "\n");
  }
}

TEST_F(OneAgent, GivesUpWhereItsPlanIsAnother) {
  EXPECT_EQ(run_lines({}, "another plan"), exit_code::bad_input);
  EXPECT_EQ(said_, fmt::format("nlaunch agent on n1: error: refused: n1 has a different plan ({}) than "
                               "the leader (another plan)\n",
                               launch::fingerprint(plan_).value().substr(0, 12)));
}

}  // namespace
}  // namespace nlaunch::fleet
