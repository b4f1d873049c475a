#include "fleet/admission.h"

#include <gtest/gtest.h>

#include <thread>

#include "fleet/leader_connection.h"
#include "unit/run_until.h"

/// An agent and the leader's server make sure of each other, over real sockets of this machine.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class Admission : public testing::Test {
 protected:
  void open() {
    server_ =
        AdmissionServer::open(
            loop_, {}, {"the token", "the plan", 2, {{"id", "/id", "/id/attempt-0"}, true, false}, patience_},
            {[this](AdmissionServer::AdmittedAgent agent) {
               if (agent.output)
                 agent.output->set({.line = [this](auto line) { output_.emplace_back(line); }, .closed = {}});
               if (agent.channel) {
                 agent.channel->set({.message = [this](auto line) { said_.emplace_back(line); },
                                     .closed = [this](const auto& why) { ends_.push_back(why); }});
                 agent.channel->send("at once");
               }
               admitted_.push_back(std::move(agent));
             },
             [this](const std::string& why) { strangers_.push_back(why); },
             [this](const std::string& why) { misfits_.push_back(why); }})
            .value();
  }
  [[nodiscard]] LeaderConnection::Options options(const std::string& token, const std::string& plan,
                                                  std::uint32_t node) const {
    return {{"127.0.0.1"}, port_ != 0 ? port_ : server_->port(), token, plan, node, limit_, patience_};
  }
  void come(const std::string& token, const std::string& plan, std::uint32_t node) {
    end_.reset();
    connection_ = std::make_unique<LeaderConnection>(
        loop_, options(token, plan, node),
        [](const sys::Channel&) {
          return message::Hello{.host = "n1", .address = "10.0.0.2", .ports = {20100}};
        },
        [this](LeaderConnection::End end) {
          end_ = std::move(end);
          if (end_->channel)
            end_->channel->set({.message = [this](auto line) { heard_ = line; }, .closed = {}});
        });
    run_until(loop_, [this] { return end_.has_value(); });
  }
  /// Connects, and says each line in answer to a challenge. What came back after it.
  std::string say(const std::function<std::string(const std::string& challenge)>& line) {
    std::unique_ptr<sys::Channel> channel;
    Lines back;
    sys::Connecting connecting(loop_, {"127.0.0.1"}, server_->port(), 5s, [&](auto made, const auto&) {
      channel = std::move(made);
      channel->set({.line = [&](auto text) { back.emplace_back(text); }, .closed = {}});
    });
    run_until(loop_, [&] { return back.size() == 1; });
    channel->send(line(std::get<message::Challenge>(decode(back.front()).value()).challenge));
    run_until(loop_, [&] { return back.size() == 2; });
    return back.back();
  }

  sys::Loop loop_;
  std::unique_ptr<AdmissionServer> server_;
  std::uint16_t port_ = 0;
  Duration limit_ = 5s;
  Duration patience_ = 5s;
  std::unique_ptr<LeaderConnection> connection_;
  std::optional<LeaderConnection::End> end_;
  std::string heard_;
  std::vector<AdmissionServer::AdmittedAgent> admitted_;
  Lines output_, said_, ends_, strangers_, misfits_;
};

TEST_F(Admission, WhoIsLetInMissesNothingOfWhatIsSaidAtOnce) {
  open();
  come("the token", "the plan", 1);
  ASSERT_TRUE(end_->channel) << end_->why;
  EXPECT_EQ(end_->assignment.paths.attempt, "/id/attempt-0");
  EXPECT_TRUE(end_->assignment.share);
  EXPECT_FALSE(end_->assignment.output);
  run_until(loop_, [this] { return !heard_.empty(); });
  EXPECT_EQ(heard_, "at once");
  ASSERT_EQ(admitted_.size(), 1U);
  EXPECT_EQ(admitted_[0].node, 1U);
  EXPECT_EQ(admitted_[0].hello.host, "n1");
  EXPECT_EQ(admitted_[0].hello.address, "10.0.0.2");
  EXPECT_EQ(admitted_[0].hello.ports, (std::vector<std::uint16_t>{20100}));
}

/// Between an agent and the server: passes lines on, and does with the agent's first `tampered` ones what a
/// test says.
class ManInTheMiddle {
 public:
  using Tamper = std::function<Lines(std::size_t number, const std::string& line)>;
  ManInTheMiddle(sys::Loop& loop, std::uint16_t server, Tamper tamper)
      : loop_(loop), server_(server), tamper_(std::move(tamper)) {
    listener_ = sys::Listener::open(loop_, [this](auto channel) { join(std::move(channel)); }).value();
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->port(); }

 private:
  void join(std::unique_ptr<sys::Channel> agent) {
    agent_ = std::move(agent);
    connecting_ = std::make_unique<sys::Connecting>(
        loop_, std::vector<std::string>{"127.0.0.1"}, server_, 5s, [this](auto channel, const auto&) {
          leader_ = std::move(channel);
          leader_->set({.line = [this](auto line) { agent_->send(line); }, .closed = {}});
          agent_->set({.line =
                           [this](auto line) {
                             for (const auto& one : tamper_(number_++, std::string(line))) leader_->send(one);
                           },
                       .closed = {}});
        });
  }
  sys::Loop& loop_;
  std::uint16_t server_;
  Tamper tamper_;
  std::size_t number_ = 0;
  std::unique_ptr<sys::Listener> listener_;
  std::unique_ptr<sys::Connecting> connecting_;
  std::unique_ptr<sys::Channel> agent_, leader_;
};

TEST_F(Admission, WhoeverIsBetweenTheTwoCannotAddRepeatDropOrChangeALine) {
  const std::map<std::string, ManInTheMiddle::Tamper> tampers{
      {"passed on", [](auto, const auto& line) { return Lines{line}; }},
      {"added",
       [](auto number, const auto& line) {
         return number == 1 ? Lines{encode(message::Settled{}), line} : Lines{line};
       }},
      {"repeated",
       [](auto number, const auto& line) {
         return number == 1 ? Lines{line, line} : Lines{line};
       }},
      {"dropped", [](auto number, const auto& line) { return number == 1 ? Lines{} : Lines{line}; }},
      {"changed", [](auto number, const auto& line) {
         return number == 1 ? Lines{line.substr(0, line.size() - 1) + "!"} : Lines{line};
       }}};
  for (const auto& [what, tamper] : tampers) {
    admitted_.clear();
    end_.reset();
    open();
    const ManInTheMiddle relay(loop_, server_->port(), tamper);
    said_.clear();
    ends_.clear();
    port_ = relay.port();
    come("the token", "the plan", 1);
    ASSERT_TRUE(end_->channel) << what << end_->why;
    end_->channel->send("one");
    end_->channel->send("two");
    run_until(loop_, [&] { return said_.size() == 2 || !ends_.empty(); });
    if (what == "passed on") {
      EXPECT_EQ(said_, (Lines{"one", "two"}));
      continue;
    }
    EXPECT_EQ(ends_, (Lines{"carried an unsigned line"})) << what;
    EXPECT_EQ(said_, what == "repeated" ? Lines{"one"} : Lines{}) << what;
  }
}

TEST_F(Admission, AnotherTokenIsRefusedAndSaidOnBothSides) {
  open();
  come("a token", "the plan", 1);
  EXPECT_EQ(end_->why, "nlaunch at 127.0.0.1 refused this node: it has a different token");
  EXPECT_TRUE(end_->refused);
  EXPECT_EQ(strangers_, (Lines{"rejected a connection from 127.0.0.1: it does not know the token"}));
  EXPECT_TRUE(admitted_.empty());
}

TEST_F(Admission, AnotherPlanAndANodeOutsideOfItAreRefusedAndSaidOnBothSides) {
  open();
  come("the token", "its own", 1);
  EXPECT_EQ(end_->why, "refused: n1 has a different plan (its own) than the leader (the plan)");
  EXPECT_TRUE(end_->refused);
  come("the token", "the plan", 2);
  EXPECT_EQ(end_->why, "refused: n1 claims to be node 2, but the plan has 2");
  EXPECT_EQ(misfits_.size(), 2U);
  EXPECT_TRUE(strangers_.empty());
}

TEST_F(Admission, TwoOfOneNodeAreBothLetInAndTheLeaderTellsThemApart) {
  open();
  come("the token", "the plan", 1);
  come("the token", "the plan", 1);
  EXPECT_EQ(admitted_.size(), 2U);
}

TEST_F(Admission, TheConnectionForOutputIsPlainText) {
  open();
  std::thread agent([options = options("the token", "the plan", 1)] {
    const auto fd = connect_output("127.0.0.1", options);
    EXPECT_TRUE(fd);
    EXPECT_TRUE(sys::write_all(fd.get(), "learner.0: step 1\n"));
  });
  run_until(loop_, [this] { return output_.size() == 1; });
  agent.join();
  EXPECT_EQ(output_, (Lines{"learner.0: step 1"}));
  ASSERT_EQ(admitted_.size(), 1U);
  EXPECT_FALSE(admitted_[0].channel);
  EXPECT_EQ(admitted_[0].node, 1U);
}

TEST_F(Admission, AConnectionForOutputOfAnotherPlanIsAMisfit) {
  open();
  std::thread agent([options = options("the token", "its own", 1)] { connect_output("127.0.0.1", options); });
  run_until(loop_, [this] { return misfits_.size() == 1; });
  agent.join();
  EXPECT_EQ(misfits_, (Lines{"127.0.0.1 has a different plan (its own) than the leader (the plan)"}));
}

TEST_F(Admission, WhatIsNotSignedIsAStranger) {
  open();
  const auto hello = encode(message::Hello{1, "the plan", "c", "n1", "", {}});
  const Lines lines{"GET / HTTP/1.1", "{}", hello, encode(launch::Signed{hello, "00"})};
  for (const auto& line : lines)
    EXPECT_EQ(say([&](const auto&) { return line; }), R"({"type":"refused","why":"token"})") << line;
  EXPECT_EQ(strangers_.size(), lines.size());
  EXPECT_TRUE(admitted_.empty());
}

TEST_F(Admission, WhoKnowsTheTokenAndSaysSomethingElseIsRefusedAndEndsNoRun) {
  open();
  say([](const std::string& challenge) {
    return encode(launch::sign(launch::End::agent, "the token", challenge, R"({"type":"hello"})"));
  });
  say([](const std::string& challenge) {
    return encode(launch::sign(launch::End::agent, "the token", challenge, encode(message::Bind{})));
  });
  EXPECT_EQ(strangers_,
            (Lines{"rejected a connection from 127.0.0.1: it knows the token but sent no valid hello: 'node' "
                   "is missing",
                   "rejected a connection from 127.0.0.1: it knows the token but sent no valid hello"}));
  EXPECT_TRUE(misfits_.empty());
  EXPECT_TRUE(admitted_.empty());
}

/// A connection to the server that says nothing by itself.
struct Silent {
  Silent(sys::Loop& loop, std::uint16_t port)
      : connecting(loop, {"127.0.0.1"}, port, 5s, [this](auto made, const auto&) {
          channel = std::move(made);
          channel->set({.line = [this](auto) { challenged = true; }, .closed = [this] { closed = true; }});
        }) {}
  std::unique_ptr<sys::Channel> channel;
  bool challenged = false;
  bool closed = false;
  sys::Connecting connecting;
};

TEST_F(Admission, WhoConnectsAndSaysNothingIsDropped) {
  patience_ = 100ms;
  open();
  Silent silent(loop_, server_->port());
  run_until(loop_, [&] { return silent.closed; });
  EXPECT_TRUE(silent.challenged);
  EXPECT_TRUE(strangers_.empty());
}

TEST_F(Admission, OfManyWhoSayNothingTheOldestIsDroppedAndOneOfOursIsLetIn) {
  open();
  std::vector<std::unique_ptr<Silent>> crowd;
  for (int i = 0; i < 100; ++i) {
    crowd.push_back(std::make_unique<Silent>(loop_, server_->port()));
    run_until(loop_, [&] { return crowd.back()->challenged; });
  }
  run_until(loop_, [&] { return crowd[31]->closed; });  // room is for 64, and two for each node
  EXPECT_FALSE(crowd[99]->closed);
  come("the token", "the plan", 1);
  EXPECT_TRUE(end_->channel) << end_->why;
}

TEST_F(Admission, ALineThatDoesNotEndIsNotKept) {
  open();
  Silent flood(loop_, server_->port());
  run_until(loop_, [&] { return flood.challenged; });
  flood.channel->send(std::string(20000, 'x'));
  run_until(loop_, [&] { return flood.closed; });
  EXPECT_TRUE(strangers_.empty());
}

TEST_F(Admission, AnAgentDoesNotWaitForOneWhoSaysNothing) {
  std::vector<std::unique_ptr<sys::Channel>> held;
  auto listener =
      sys::Listener::open(loop_, [&](auto channel) { held.push_back(std::move(channel)); }).value();
  port_ = listener->port();
  limit_ = 300ms;
  patience_ = 100ms;
  come("the token", "the plan", 1);
  EXPECT_EQ(
      end_->why,
      fmt::format("the process that listens on port {} of 127.0.0.1 sent nothing: it is not nlaunch", port_));
  EXPECT_FALSE(end_->refused);
}

TEST_F(Admission, OneWhoOnlySaysThatItIsOursIsNot) {
  const auto welcome = encode(message::Welcome{});
  std::unique_ptr<sys::Channel> theirs;
  auto listener = sys::Listener::open(loop_, [&](std::unique_ptr<sys::Channel> channel) {
    auto* raw = channel.get();
    raw->set({.line = [&, raw](auto) { raw->send(encode(launch::Signed{welcome, "00"})); }, .closed = {}});
    raw->send(encode(message::Challenge{"x"}));
    theirs = std::move(channel);
  });
  ASSERT_TRUE(listener);
  port_ = (*listener)->port();
  come("the token", "the plan", 1);
  EXPECT_EQ(end_->why, "the process at 127.0.0.1 does not know the token");
  EXPECT_TRUE(end_->refused);
}

}  // namespace
}  // namespace nlaunch::fleet
