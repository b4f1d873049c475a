#include "fleet/leader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/exit_code.h"
#include "fleet/leader_connection.h"
#include "unit/fleet/damaged_messages.h"

/// The leader with agents that speak its protocol from a thread of this program.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

plan::Plan two_nodes() {
  plan::Plan plan;
  plan.name = "test";
  plan.node.count = 2;
  return plan;
}

DamagedMessages damaged(2);

/// What an agent does.
enum class Kind {
  good,
  refuses,
  is_lost,
  says_nonsense,
  says_anything,
  relays,           ///< for node 1
  relays_for_none,  ///< a message of a node that the plan does not have
  loses_the_other,  ///< relays for node 1, which connects to the leader before it has heard anything
};

/// One thread with the agents of all nodes, until the leader has let all go.
class FakeAgents {
 public:
  struct One {
    std::uint32_t node = 0;
    Kind kind = Kind::good;
  };
  FakeAgents(std::vector<One> agents, std::uint16_t port, std::string token, fs::path over)
      : over_(std::move(over)), thread_([this, agents = std::move(agents), port, token = std::move(token)] {
          sys::Loop loop;
          loop_ = &loop;
          for (const auto& one : agents) connect(one, port, token);
          loop.after(20s, [&loop] { loop.stop(); });
          loop.run();
          connections_.clear();
          channels_.clear();
        }) {}
  ~FakeAgents() {
    if (thread_.joinable()) thread_.join();
  }
  /// What each agent received, in order. Once the leader has let them go.
  std::map<std::size_t, std::vector<std::string>>& heard() {
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  void connect(const One& one, std::uint16_t port, const std::string& token) {
    const auto index = channels_.size();
    channels_.emplace_back();
    const bool comes_back = one.node == 1 && relays_;
    relays_ = relays_ || one.kind >= Kind::relays;
    connections_.push_back(std::make_unique<LeaderConnection>(
        *loop_,
        LeaderConnection::Options{
            {"127.0.0.1"}, port, token, launch::fingerprint(two_nodes()).value(), one.node, 5s},
        [index, comes_back](const sys::Channel&) {
          auto hello = hello_of(index);
          if (comes_back) hello.received = 0;
          return hello;
        },
        [this, index, kind = one.kind](LeaderConnection::End end) {
          if (!end.channel) return let_go();
          channels_[index] = std::move(end.channel);
          channels_[index]->set({.message = [this, index, kind](auto line) { on_message(index, kind, line); },
                                 .closed = [this](const std::string&) { let_go(); }});
          if (kind >= Kind::relays) relay(*channels_[index], message_of_other());
        }));
    port_ = port;
    token_ = token;
  }

  static message::Hello hello_of(std::size_t index) {
    return {.host = fmt::format("host{}", index), .address = "127.0.0.1", .ports = {20100}, .agent = "a"};
  }
  static Message message_of_other() {
    auto hello = hello_of(1);
    hello.node = 1;
    hello.plan = launch::fingerprint(two_nodes()).value();
    return hello;
  }
  static void relay(SealedChannel& channel, const Message& message, std::uint32_t node = 1) {
    const bool arrives = std::holds_alternative<message::Hello>(message);
    channel.send(addressed({arrives ? Address::To::arrival : Address::To::node, node}, encode(message)));
  }

  void on_message(std::size_t index, Kind kind, std::string_view line) {
    heard_[index].emplace_back(line);
    const auto read = read_address(line).value();
    const auto message = decode(read.text).value();
    auto& channel = channels_[index];
    if (std::holds_alternative<message::Bye>(message)) return let_go();
    if (!std::holds_alternative<message::Bind>(message)) return;
    switch (kind) {
      case Kind::good:
        return channel->send(encode(bound()));
      case Kind::refuses:
        return channel->send(encode(message::NotBound{exit_code::bad_input, "no GPU", "error: no GPU\n"}));
      case Kind::says_nonsense:
        return channel->send(R"({"type":"dance"})");
      case Kind::says_anything:
        for (const auto& said : damaged.next(4)) channel->send(said);
        return channel->send(encode(bound()));
      case Kind::relays:
        channel->send(encode(bound()));
        return relay(*channel, bound());
      case Kind::relays_for_none:
        return relay(*channel, bound(), 7);
      case Kind::loses_the_other:
        channel->send(encode(bound()));
        relay(*channel, message::Gone{"was closed", true});
        return loop_->post([this] { connect({1}, port_, token_); });
      case Kind::is_lost:
        loop_->post([this, index] {
          channels_[index].reset();
          let_go();
        });
    }
  }

  static message::Bound bound() {
    message::Bound bound;
    bound.notes = {"a note"};
    bound.dropped = {"NCCL_DEBUG"};
    bound.libraries = nlohmann::json::object();
    bound.lock = {{"libraries", nlohmann::json::object()}};
    return bound;
  }

  /// The program that started the agents ends with the last of them.
  void let_go() {
    if (++gone_ < channels_.size()) return;
    std::ofstream(over_) << "over\n";
    loop_->stop();
  }

  fs::path over_;
  sys::Loop* loop_ = nullptr;
  std::vector<std::unique_ptr<LeaderConnection>> connections_;
  std::vector<std::unique_ptr<SealedChannel>> channels_;
  std::size_t gone_ = 0;
  bool relays_ = false;
  std::uint16_t port_ = 0;
  std::string token_;
  std::map<std::size_t, std::vector<std::string>> heard_;
  std::thread thread_;
};

class FakeLauncher : public AgentLauncher {
 public:
  FakeLauncher(std::vector<FakeAgents::One> agents, std::unique_ptr<FakeAgents>& started)
      : agents_(std::move(agents)), started_(started) {}
  [[nodiscard]] std::vector<std::string> nodes() const override { return {"n0", "n1"}; }
  [[nodiscard]] std::string starter() const override { return "the fake"; }
  [[nodiscard]] std::string log() const override { return "fake.log"; }
  Result<std::vector<Start>> start(const launch::RunPaths& paths, std::uint16_t port,
                                   const std::string& token) override {
    const auto over = paths.attempt / "over";
    if (!agents_.empty()) started_ = std::make_unique<FakeAgents>(agents_, port, token, over);
    return std::vector{Start{{"/bin/sh", "-c", "while [ ! -e \"$0\" ]; do sleep 0.02; done", over.string()},
                             {"PATH=/usr/bin:/bin"}}};
  }
  [[nodiscard]] Duration patience() const override {
    return agents_.size() == 2 || agents_[0].kind >= Kind::relays ? 10s : 300ms;
  }
  [[nodiscard]] Duration kill_wait() const override { return 30s; }
  [[nodiscard]] bool shares_a_folder() const override { return true; }
  [[nodiscard]] std::string look_at(const std::string& host) const override { return "look at " + host; }

 private:
  std::vector<FakeAgents::One> agents_;
  std::unique_ptr<FakeAgents>& started_;
};

class WithAgents : public testing::Test {
 protected:
  WithAgents() : folder_(fs::path(testing::TempDir()) / fmt::format("leader-{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "attempt-0");
    caller_.console = report::Console({}, [this](std::string_view text) { said_ += text; });
    caller_.console.quiet = true;
  }
  ~WithAgents() override {
    leader_.reset();
    agents_.reset();
    fs::remove_all(folder_);
  }

  std::optional<session::AttemptHost::Refused> bind(std::vector<FakeAgents::One> agents) {
    leader_ = std::make_unique<Leader>(
        plan_, false, std::make_unique<FakeLauncher>(std::move(agents), agents_), caller_, guardian_);
    return leader_->bind({"id", folder_, folder_ / "attempt-0"});
  }

  plan::Plan plan_ = two_nodes();
  fs::path folder_;
  session::Caller caller_;
  std::string said_;
  supervise::GuardianLink guardian_;
  std::unique_ptr<FakeAgents> agents_;
  std::unique_ptr<Leader> leader_;
};

TEST_F(WithAgents, AllComeAndAreBound) {
  const auto refused = bind({{0}, {1}});
  ASSERT_FALSE(refused) << refused->sentence;
  EXPECT_EQ(leader_->bound().notes, (std::vector<std::string>{"n0: a note", "n1: a note"}));
  EXPECT_EQ(leader_->bound().dropped, (std::vector<std::string>{"NCCL_DEBUG"}));
  EXPECT_EQ(leader_->lost(), "");
  std::ifstream nodes(folder_ / "attempt-0/nodes.json");
  std::string text;
  std::getline(nodes, text);
  EXPECT_EQ(text, R"([{"address":"127.0.0.1","host":"n0","ports":[20100]},)"
                  R"({"address":"127.0.0.1","host":"n1","ports":[20100]}])");
}

TEST_F(WithAgents, OneThatNeverComesIsNamed) {
  const auto refused = bind({{0}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "no agent connected from n1 within 300ms");
  EXPECT_EQ(refused->exit_code, exit_code::internal);
  EXPECT_EQ(said_, "nlaunch: no agent connected from n1 within 300ms\n");
}

TEST_F(WithAgents, OneThatCannotBindItsNodeIsASuspect) {
  const auto refused = bind({{0}, {1, Kind::refuses}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "n1: no GPU");
  EXPECT_EQ(refused->exit_code, exit_code::bad_input);
  ASSERT_EQ(refused->suspects.size(), 1U);
  EXPECT_EQ(refused->suspects[0].host, "n1");
  EXPECT_EQ(said_, "on n1:\nerror: no GPU\n");
}

TEST_F(WithAgents, WhatNoNodeCanDoIsNoNodesFault) {
  const auto refused = bind({{0, Kind::refuses}, {1, Kind::refuses}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "n0: no GPU");
  EXPECT_TRUE(refused->suspects.empty());
}

TEST_F(WithAgents, OneThatIsLostWhileItBindsIsNamed) {
  std::ofstream(folder_ / "attempt-0/fake.log")
      << "nlaunch agent on n1: the connection to nlaunch was closed, through n0; connecting another way\n";
  const auto refused = bind({{0}, {1, Kind::is_lost}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "node n1: the connection to its agent was closed");
  EXPECT_EQ(leader_->lost(), "node n1: the connection to its agent was closed");
}

TEST_F(WithAgents, OneThatSaysWhatCannotBeReadIsLost) {
  const auto refused = bind({{0}, {1, Kind::says_nonsense}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "node n1: its agent sent an invalid message: unknown type 'dance'");
}

TEST_F(WithAgents, WhateverAnAgentSaysTheLeaderGoesOnOrNamesItsNode) {
  constexpr int kRounds = 10;  // of a second each, where a node is lost
  for (int round = 0; round < kRounds; ++round) {
    const auto refused = bind({{0}, {1, Kind::says_anything}});
    if (refused) {
      EXPECT_TRUE(refused->sentence.starts_with("n1") || refused->sentence.starts_with("node n1"))
          << refused->sentence;
    }
    leader_.reset();
    agents_.reset();
    fs::remove_all(folder_ / "attempt-0");
    fs::create_directories(folder_ / "attempt-0");
  }
}

TEST_F(WithAgents, ANodeIsReachedThroughAnother) {
  const auto refused = bind({{0, Kind::relays}});
  ASSERT_FALSE(refused) << refused->sentence;
  EXPECT_EQ(leader_->bound().notes, (std::vector<std::string>{"n0: a note", "n1: a note"}));
  leader_.reset();
  EXPECT_EQ(agents_->heard()[0],
            (std::vector<std::string>{R"(* {"type":"bind"})", R"(* {"exit_code":null,"type":"bye"})"}));
}

TEST_F(WithAgents, ANodeThatLosesItsRelayComesBackAndHearsWhatItMissed) {
  const auto refused = bind({{0, Kind::loses_the_other}});
  ASSERT_FALSE(refused) << refused->sentence;
  EXPECT_EQ(leader_->bound().notes, (std::vector<std::string>{"n0: a note", "n1: a note"}));
  leader_.reset();
  const std::string bye = R"({"exit_code":null,"type":"bye"})";
  EXPECT_EQ(agents_->heard()[0], (std::vector<std::string>{R"(* {"type":"bind"})", bye}));
  EXPECT_EQ(agents_->heard()[1],
            (std::vector<std::string>{R"({"received":0,"type":"resume"})", R"({"type":"bind"})", bye}));
}

TEST_F(WithAgents, ARelayThatSpeaksForANodeThatDoesNotExistIsLost) {
  const auto refused = bind({{0, Kind::relays_for_none}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->sentence, "node n0: its agent relayed a message from a node that does not exist");
}

TEST_F(WithAgents, TwoOfOneNodeAreNoRun) {
  const auto refused = bind({{0}, {0}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->exit_code, exit_code::bad_input);
  EXPECT_TRUE(refused->sentence == "host1 and host0 both claim to be node 0" ||
              refused->sentence == "host0 and host1 both claim to be node 0")
      << refused->sentence;
}

}  // namespace
}  // namespace nlaunch::fleet
