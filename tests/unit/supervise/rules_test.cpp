#include <gtest/gtest.h>

#include <csignal>

#include "supervise/state_machine.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;
using Stages = std::vector<std::vector<ProcessIndex>>;

/// Two engines, of which each spawns a worker, and a learner that waits for them.
plan::Plan plan_of_two_stages() {
  plan::Plan plan;
  plan.scheduler = "slurm";
  plan::Role engine;
  engine.name = "engine";
  engine.kind = RoleKind::engine;
  engine.ready.tcp = "127.0.0.1:80";
  engine.stop = {SIGINT, 5s};
  engine.restart = {true, 2, 7s};
  engine.exit_ok = engine.leave = true;
  plan::Role worker;
  worker.name = "worker";
  worker.spawned_by = {"engine"};
  plan::Role learner;
  learner.name = "learner";
  learner.kind = RoleKind::learner;
  learner.ends_run = true;
  plan.roles = {engine, worker, learner};
  for (const std::uint32_t role : {0U, 0U, 1U, 1U, 2U}) plan.processes.emplace_back().role = role;
  plan.stages = {{0, 1}, {2}};
  return plan;
}

TEST(RulesOf, HaveWhatTheRolesSayOfTheProcessesThatAreStarted) {
  const auto rules = rules_of(plan_of_two_stages());
  ASSERT_EQ(rules.processes.size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    const auto& engine = rules.processes[i];
    EXPECT_EQ(engine.process, i);
    EXPECT_EQ(engine.role, "engine");
    EXPECT_EQ(engine.ready, ProcessRules::Ready::checked);
    EXPECT_EQ(engine.stop.signal, SIGINT);
    EXPECT_EQ(engine.restart.max, 2U);
    EXPECT_TRUE(engine.restart.on_failure && engine.exit_ok && engine.leave);
    EXPECT_FALSE(engine.ends_run);
  }
  const auto& learner = rules.processes[2];
  EXPECT_EQ(learner.process, 4U) << "the spawned ones are not started";
  EXPECT_EQ(learner.ready, ProcessRules::Ready::started);
  EXPECT_TRUE(learner.ends_run);
  EXPECT_FALSE(learner.exit_ok || learner.leave || learner.restart.on_failure);
  EXPECT_EQ(rules.stages, (Stages{{0, 1}, {2}}));
}

TEST(RulesOf, OneThatPreparesIsReadyByItsExit) {
  auto plan = plan_of_two_stages();
  plan.roles[0].ready = {};
  plan.roles[0].ready.exited = true;
  EXPECT_EQ(rules_of(plan).processes[0].ready, ProcessRules::Ready::exited);
}

TEST(RulesOf, ARoleThatNoStageNamesStartsAtOnce) {
  auto plan = plan_of_two_stages();
  plan.stages = {{2}, {1}};
  EXPECT_EQ(rules_of(plan).stages, (Stages{{0, 1, 2}, {}}));
  plan.stages.clear();
  EXPECT_EQ(rules_of(plan).stages, (Stages{{0, 1, 2}}));
  plan.processes.clear();
  EXPECT_EQ(rules_of(plan).stages, Stages{{}});
}

TEST(RulesOf, LearnersGetTheSignalOfTheWalltimeWhereTheSchedulerTellsIt) {
  auto plan = plan_of_two_stages();
  EXPECT_FALSE(rules_of(plan).walltime);
  EXPECT_FALSE(rules_of(plan).processes[2].walltime_signal);
  plan.walltime = Walltime{.signal = SIGUSR1};
  auto rules = rules_of(plan);
  EXPECT_TRUE(rules.walltime);
  EXPECT_FALSE(rules.processes[0].walltime_signal);
  EXPECT_EQ(rules.processes[2].walltime_signal, SIGUSR1);
  plan.scheduler = "local";
  rules = rules_of(plan);
  EXPECT_FALSE(rules.walltime);
  EXPECT_FALSE(rules.processes[2].walltime_signal);
}

TEST(RulesOf, HaveTheSignalsOfTheExperiment) {
  auto plan = plan_of_two_stages();
  plan.signals[SIGUSR1] = {SignalRule::Action::forward, {"learner"}};
  EXPECT_EQ(rules_of(plan).signals.at(SIGUSR1).roles, std::vector<std::string>{"learner"});
}

TEST(RulesOf, OfAReplicaTheLeaderAloneIsAskedWhetherItAnswersAndHasTheWeights) {
  auto plan = plan_of_two_stages();
  plan.roles[0].replica = plan::Replica{1, 2};
  plan.processes[1].index = 1;
  for (const auto& process : rules_of(plan).processes) EXPECT_FALSE(process.watched || process.gets_fresh);
  plan.roles[0].alive.emplace();
  plan.roles[0].fresh.emplace();
  const auto rules = rules_of(plan);
  EXPECT_TRUE(rules.processes[0].watched && rules.processes[0].gets_fresh);
  EXPECT_FALSE(rules.processes[1].watched || rules.processes[1].gets_fresh);
  EXPECT_FALSE(rules.processes[2].watched || rules.processes[2].gets_fresh);
}

}  // namespace
}  // namespace nlaunch::supervise
