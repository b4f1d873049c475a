#include "supervise/steering.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

using Kind = RunRequest::Kind;

struct Describe {
  static std::string list(const char* name, const std::vector<ProcessIndex>& processes) {
    return fmt::format("{} {}", name, fmt::join(processes, "+"));
  }
  std::string operator()(const event::RestartWanted& e) const { return list("restart", e.processes); }
  std::string operator()(const event::Park& e) const { return list("park", e.processes); }
  std::string operator()(const event::Unpark& e) const { return list("unpark", e.processes); }
  std::string operator()(const event::Drain& e) const { return list("drain", e.processes); }
  template <class Other>
  std::string operator()(const Other&) const {
    return "?";
  }
};

/// Node n0 has two learners with one communicator, n1 to n3 an engine each, of which two are enough, n3 a
/// service besides; a task has ended.
class SteeringTest : public testing::Test {
 protected:
  SteeringTest() {
    plan::Role learner, engine, router, task;
    learner.name = "learner";
    learner.kind = RoleKind::learner;
    learner.ends_run = true;
    learner.rendezvous = Rendezvous::torch;
    learner.count = 2;
    engine.name = "engine";
    engine.kind = RoleKind::engine;
    engine.tolerate = 2;
    engine.count = 3;
    router.name = "router";
    router.kind = RoleKind::service;
    router.count = 1;
    task.name = "prepare";
    task.kind = RoleKind::task;
    task.ready.exited = true;
    task.count = 1;
    plan.roles = {learner, engine, router, task};
    add(0, 0, 0);
    add(0, 1, 0);
    for (std::uint32_t i = 0; i < 3; ++i) add(1, i, i + 1);
    add(2, 0, 3);
    add(3, 0, 0);
    rules = rules_of(plan);
    state.processes.resize(plan.processes.size());
    for (auto& process : state.processes) process.phase = Serving{};
    state.processes[6].phase = Ended{};
  }

  void add(std::uint32_t role, std::uint32_t index, std::uint32_t node) {
    auto& process = plan.processes.emplace_back();
    process.role = role;
    process.index = index;
    process.node = node;
    hosts.push_back(fmt::format("n{}", node));
  }

  /// The answer, and behind an arrow what the table hears.
  std::string request(Kind kind, const std::string& what, std::uint32_t count = 0) {
    const auto decision = decide(plan, rules, state, hosts, {kind, what, count});
    EXPECT_EQ(decision.answer.granted || decision.events.empty(), true);
    auto text = decision.answer.text;
    for (const auto& event : decision.events) text += " -> " + std::visit(Describe{}, event);
    return decision.answer.granted ? text : "no: " + text;
  }

  /// What another plan comes to: the answer and what the table hears, as above, or "no: " and why.
  std::string updated(const plan::Plan& after) {
    const auto roles = updatable_roles(plan, after, rules, state);
    if (!roles) return "no: " + roles.error();
    const auto decision = start_again(plan, rules, state, *roles);
    auto text = decision.answer.text;
    for (const auto& event : decision.events) text += " -> " + std::visit(Describe{}, event);
    return text;
  }

  plan::Plan plan;
  Rules rules;
  State state{Going{}, {}, {}};
  std::vector<std::string> hosts;
};

TEST_F(SteeringTest, RestartsAReplicaOrAWholeRole) {
  EXPECT_EQ(request(Kind::restart, "engine.1"), "restarting engine.1 -> restart 3");
  EXPECT_EQ(request(Kind::restart, "engine"), "restarting engine.0, engine.1, engine.2 -> restart 2+3+4");
  EXPECT_EQ(request(Kind::restart, "learner"), "restarting learner.0, learner.1 -> restart 0+1");
  EXPECT_EQ(request(Kind::restart, "learner.1"),
            "no: the processes of 'learner' share one communicator: nlaunch restart RUN learner restarts all "
            "of them");
  EXPECT_EQ(request(Kind::restart, "prepare"), "no: 'prepare' is a task, which exits on its own");
  EXPECT_EQ(
      request(Kind::restart, "engine.7"),
      "no: 'engine.7' not found in the run; it has engine (engine.0 to engine.2), learner (learner.0 to "
      "learner.1), prepare, router");
  state.processes[3].phase = Ended{};
  EXPECT_EQ(request(Kind::restart, "engine.1"), "no: 'engine.1' is not running");
  EXPECT_EQ(request(Kind::restart, "engine"), "restarting engine.0, engine.2 -> restart 2+4");
}

TEST_F(SteeringTest, AMemberMeansItsReplica) {
  plan.roles[1].replica = plan::Replica{1, 3};
  rules = rules_of(plan);
  EXPECT_EQ(request(Kind::restart, "engine.0.2"), "restarting engine.0 -> restart 2+3+4");
  EXPECT_EQ(request(Kind::restart, "engine.0"), "restarting engine.0 -> restart 2+3+4");
}

TEST_F(SteeringTest, DrainsANodeThatTheRunCanDoWithout) {
  EXPECT_EQ(request(Kind::drain, "n1"), "draining n1: stopping engine.0 -> drain 2");
  EXPECT_EQ(request(Kind::drain, "n0"), "no: nlaunch itself runs on n0, the first node of the run");
  EXPECT_EQ(request(Kind::drain, "n3"),
            "no: role 'router' runs on n3 and has no 'tolerate': the run would end without it");
  EXPECT_EQ(request(Kind::drain, "n9"), "no: no process of the run is on 'n9': its nodes are n0, n1, n2, n3");
  state.processes[3].missing = ProcessState::Missing::given_up;
  state.processes[3].phase = Ended{};
  EXPECT_EQ(request(Kind::drain, "n1"),
            "no: without n1, fewer processes would be left than the min of 'tolerate'");
  EXPECT_EQ(request(Kind::drain, "n2"), "n2 is drained: the run has no processes there -> drain 3");
  for (auto& host : hosts) host.clear();
  EXPECT_EQ(request(Kind::drain, "n1"),
            "no: the run is on one machine: its processes cannot move to another node");
}

TEST_F(SteeringTest, ScalesWithinThePlan) {
  EXPECT_EQ(request(Kind::scale, "engine", 2), "scaling 'engine' to 2: stopping engine.2 -> park 4");
  EXPECT_EQ(request(Kind::scale, "engine", 3), "'engine' already has 3");
  EXPECT_EQ(request(Kind::scale, "engine", 1), "no: 'engine' needs at least 2, and 1 would be left");
  EXPECT_EQ(request(Kind::scale, "engine", 4), "no: the plan has room for 3 of 'engine', not for 4");
  EXPECT_EQ(request(Kind::scale, "learner", 1),
            "no: role 'learner' cannot be scaled: only engines and services can");
  state.processes[3].missing = ProcessState::Missing::may_start;
  state.processes[3].parked = true;
  EXPECT_EQ(request(Kind::scale, "engine", 3), "scaling 'engine' to 3: starting engine.1 -> unpark 3");
  state.processes[4].missing = ProcessState::Missing::given_up;
  EXPECT_EQ(request(Kind::scale, "engine", 3),
            "no: 1 of 'engine' are permanently lost: it can have at most 2 now");
}

TEST_F(SteeringTest, OfEnginesThatWaitForANodeFewerAreParkedFirst) {
  state.processes[2].missing = ProcessState::Missing::away;
  EXPECT_EQ(request(Kind::scale, "engine", 2), "scaling 'engine' to 2: stopping engine.0 -> park 2");
  EXPECT_EQ(request(Kind::scale, "engine", 3), "'engine' already has 3");
  plan.roles[1].tolerate = 1;
  EXPECT_EQ(request(Kind::scale, "engine", 1),
            "scaling 'engine' to 1: stopping engine.0, engine.2 -> park 2+4");
}

TEST_F(SteeringTest, ANodeIsLeftOnce) {
  state.processes[2].missing = ProcessState::Missing::draining;
  EXPECT_EQ(request(Kind::drain, "n1"), "no: n1 is already draining");
  state.processes[2].missing = ProcessState::Missing::away;
  EXPECT_EQ(request(Kind::drain, "n1"), "no: n1 is lost; another node will take its place");
}

TEST_F(SteeringTest, WhatHasYetToStartIsThere) {
  state.processes[2].phase = Waiting{};
  EXPECT_EQ(request(Kind::drain, "n1"), "draining n1: stopping engine.0 -> drain 2");
  rules.processes[2].tolerate.reset();
  EXPECT_EQ(request(Kind::drain, "n1"),
            "no: role 'engine' runs on n1 and has no 'tolerate': the run would end without it");
}

TEST_F(SteeringTest, OfManyTheFirstAreNamed) {
  for (std::uint32_t i = 3; i < 20; ++i) add(1, i, 1);
  plan.roles[1].count = 20;
  rules = rules_of(plan);
  state.processes.resize(plan.processes.size());
  for (auto& process : state.processes) process.phase = Serving{};
  EXPECT_TRUE(
      request(Kind::restart, "engine")
          .starts_with("restarting engine.0, engine.1, engine.2, engine.3, engine.4, engine.5, engine.6, "
                       "engine.7 and 12 more"));
}

TEST_F(SteeringTest, ARunThatEndsGrantsNothing) {
  state.phase = Ending{Finished{}};
  EXPECT_EQ(request(Kind::restart, "engine"), "no: the run is ending");
}

TEST_F(SteeringTest, AnUpdateStartsTheRolesAgainThatDiffer) {
  auto after = plan;
  after.roles[1].command = {"serve", "--more"};
  EXPECT_EQ(updated(after), "restarting engine.0, engine.1, engine.2 -> restart 2+3+4");
  after.roles[0].command = {"train", "--more"};
  EXPECT_EQ(updated(after),
            "restarting learner.0, learner.1; restarting engine.0, engine.1, engine.2 -> restart 0+1 -> "
            "restart 2+3+4");
  for (const ProcessIndex process : {2U, 3U, 4U})
    state.processes[process].missing = ProcessState::Missing::away;
  after.roles[0].command.clear();
  EXPECT_EQ(updated(after), "'engine' gets the new plan when it starts");
}

TEST_F(SteeringTest, AnUpdateIsRefusedWhole) {
  auto after = plan;
  EXPECT_EQ(updated(after), "no: the plan is unchanged");
  after.roles[1].command = {"serve", "--more"};
  after.roles[1].gpus = 4;
  EXPECT_EQ(updated(after), "no: engine gpus cannot change during the run");
  after.roles[1].gpus = plan.roles[1].gpus;
  after.roles[3].command = {"prepare", "--more"};
  EXPECT_EQ(updated(after), "no: 'prepare' is a task, which exits on its own");
  state.phase = Ending{};
  EXPECT_EQ(updated(after), "no: the run is ending");
}

TEST_F(SteeringTest, WhatIsAboutToStartBeginsWithTheOldPlanAndStartsAgain) {
  auto after = plan;
  after.roles[2].command = {"route", "--more"};
  state.processes[5].phase = Starting{};
  EXPECT_EQ(updated(after), "restarting router.0 -> restart 5");
}

}  // namespace
}  // namespace nlaunch::supervise
