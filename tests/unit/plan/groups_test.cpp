#include "plan/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace nlaunch::plan {
namespace {

/// A plan of roles with processes that a test adds.
struct Groups : testing::Test {
  void role(const std::string& name, RoleKind kind, std::uint32_t gpus) {
    Role one;
    one.name = name;
    one.kind = kind;
    one.gpus = gpus;
    plan.roles.push_back(one);
  }
  /// Of the last role.
  void process(std::uint32_t node, std::vector<std::uint16_t> gpus) {
    auto& of = plan.roles.back();
    Process one;
    one.role = static_cast<std::uint32_t>(plan.roles.size() - 1);
    one.index = of.count++;
    one.node = node;
    one.gpus = std::move(gpus);
    plan.processes.push_back(one);
    plan.node.count = std::max(plan.node.count, node + 1);
  }
  /// "learner world (world): 0/1 1/0": the members as process and GPU.
  std::vector<std::string> made() {
    plan.weight_syncs.front().world_size = weight_sync_size(plan, plan.weight_syncs.front());
    plan.groups = make_groups(plan);
    std::vector<std::string> out;
    for (const auto& group : plan.groups) {
      EXPECT_EQ(group.backend, plan.backend);
      out.push_back(group.name + " (" + std::string(name_of(group.kind)) + "):");
      for (const auto& member : group.members)
        out.back() += " " + std::to_string(member.process) + "/" + std::to_string(member.gpu);
    }
    return out;
  }

  Plan plan;
};

using Names = std::vector<std::string>;

TEST_F(Groups, EachNodeTheLearnersEachEngineAndTheWeightSync) {
  plan.backend = Backend::gloo;
  plan.weight_syncs.front().backend = SyncBackend::gloo;
  role("engine", RoleKind::engine, 2);
  process(0, {2, 3});
  process(1, {0, 1});
  role("judge", RoleKind::service, 1);
  process(1, {3});
  role("learner", RoleKind::learner, 1);
  process(0, {0});
  process(0, {1});
  process(1, {2});
  EXPECT_EQ(made(), (Names{"node 0 (node): 3/0 4/1 0/2 0/3", "node 1 (node): 1/0 1/1 5/2 2/3",
                           "learner world (world): 3/0 4/1 5/2",
                           "engine.0 tensor parallel (tensor-parallel): 0/2 0/3",
                           "engine.1 tensor parallel (tensor-parallel): 1/0 1/1",
                           "weight sync (weight-sync): 3/0 0/2 0/3 1/0 1/1"}));
  EXPECT_EQ(plan.weight_syncs.front().world_size, 5U);
}

TEST_F(Groups, AGpuThatSeveralHaveOneAfterTheOtherIsThereOnce) {
  role("prepare", RoleKind::service, 2);
  process(0, {0, 1});
  role("warm-up", RoleKind::learner, 1);
  process(0, {0});
  process(0, {1});
  role("learner", RoleKind::learner, 1);
  process(0, {0});
  process(0, {1});
  role("engine", RoleKind::engine, 1);
  process(0, {2});
  plan.stages = {{0}, {1}, {2, 3}};
  EXPECT_EQ(made(), (Names{"node 0 (node): 3/0 4/1 5/2", "learner world (world): 3/0 4/1",
                           "weight sync (weight-sync): 3/0 5/2"}));
}

TEST_F(Groups, AnEngineOnTheGpusOfALearnerIsInNoWeightSync) {
  role("learner", RoleKind::learner, 1);
  process(0, {0});
  process(0, {1});
  role("engine", RoleKind::engine, 2);
  process(0, {0, 1});
  plan.roles.back().share_gpus_with = {"learner"};
  EXPECT_EQ(made(), (Names{"node 0 (node): 0/0 1/1", "learner world (world): 0/0 1/1",
                           "engine.0 tensor parallel (tensor-parallel): 2/0 2/1"}));
  EXPECT_EQ(plan.weight_syncs.front().world_size, 0U);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[2]), -1);
}

TEST_F(Groups, OfEnginesOnTheSameGpusTheFirstIsInTheWeightSync) {
  role("own", RoleKind::engine, 1);
  process(0, {2});
  plan.roles.back().share_gpus_with = {"judge"};
  role("judge", RoleKind::service, 1);
  process(0, {2});
  role("draft", RoleKind::engine, 1);
  process(0, {2});
  plan.roles.back().share_gpus_with = {"judge"};
  role("colocated", RoleKind::engine, 1);
  process(0, {0});
  role("learner", RoleKind::learner, 1);
  process(0, {0});
  plan.roles.back().share_gpus_with = {"colocated"};
  role("far", RoleKind::engine, 1);
  process(1, {0});
  EXPECT_EQ(made(), (Names{"node 0 (node): 4/0 0/2", "weight sync (weight-sync): 4/0 0/2 5/0"}));
  EXPECT_EQ(plan.weight_syncs.front().world_size, 3U);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[5]), 2);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[2]), -1);
  EXPECT_TRUE(share_gpus(plan.roles[0], plan.roles[1]));
  EXPECT_TRUE(share_gpus(plan.roles[0], plan.roles[2]));
  EXPECT_FALSE(share_gpus(plan.roles[0], plan.roles[4]));
}

TEST_F(Groups, AnEngineOnTheGpusOfAnotherLearnerIsSentItsWeights) {
  role("actor", RoleKind::learner, 1);
  process(0, {0});
  role("critic", RoleKind::learner, 1);
  process(0, {1});
  role("engine", RoleKind::engine, 1);
  process(0, {1});
  plan.roles.back().share_gpus_with = {"critic"};
  EXPECT_EQ(made().back(), "weight sync (weight-sync): 0/0 2/1");
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[2]), 1);
}

TEST_F(Groups, TheWeightSyncHasTheOrderThatIsAskedFor) {
  role("learner", RoleKind::learner, 2);
  process(0, {0, 1});
  process(1, {0, 1});
  role("engine", RoleKind::engine, 2);
  process(0, {2, 3});
  process(2, {2, 3});
  plan.weight_syncs.front().order = {"engine", "learner.0"};
  EXPECT_EQ(made().back(), "weight sync (weight-sync): 2/2 2/3 3/2 3/3 0/0");
  EXPECT_EQ(plan.weight_syncs.front().world_size, 5U);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[0]), 4);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[3]), 2);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[1]), -1);
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 0U);
  plan.weight_syncs.front().master = "engine.1";
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 2U);
  plan.weight_syncs.front().order = {"learner", "engine.1"};
  EXPECT_EQ(made().back(), "weight sync (weight-sync): 0/0 0/1 1/0 1/1 3/2 3/3");
}

TEST_F(Groups, OneRankAloneIsNoGroup) {
  role("learner", RoleKind::learner, 1);
  process(0, {0});
  role("engine", RoleKind::engine, 1);
  process(1, {0});
  EXPECT_EQ(made(), Names{"weight sync (weight-sync): 0/0 1/0"});
}

TEST_F(Groups, WithoutAnEngineOrALearnerNoWeightsAreSent) {
  role("learner", RoleKind::learner, 2);
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 0U);
  process(0, {0, 1});
  EXPECT_EQ(made(), (Names{"node 0 (node): 0/0 0/1", "learner world (world): 0/0 0/1"}));
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[0]), -1);
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 0U);
  role("engine", RoleKind::engine, 0);
  process(0, {});
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 0U) << "an engine without GPUs";
  plan = {};
  role("engine", RoleKind::engine, 2);
  process(0, {0, 1});
  role("service", RoleKind::service, 1);
  process(0, {2});
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 0U);
  role("learner", RoleKind::learner, 1);
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 0U) << "a learner without processes";
  process(0, {3});
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 3U);
}

TEST_F(Groups, TheSizeCountsTheEnginesOfAllRoles) {
  role("small", RoleKind::engine, 1);
  process(0, {0});
  process(0, {1});
  role("learner", RoleKind::learner, 1);
  process(0, {2});
  role("large", RoleKind::engine, 4);
  process(1, {0, 1, 2, 3});
  role("tool", RoleKind::service, 0);
  process(0, {});
  EXPECT_EQ(weight_sync_size(plan, plan.weight_syncs.front()), 7U);
}

TEST_F(Groups, TheRankIsThatOfTheFirstGpu) {
  role("small", RoleKind::engine, 1);
  process(0, {0});
  process(0, {1});
  role("learner", RoleKind::learner, 1);
  process(0, {2});
  process(0, {3});
  plan.processes[2].rank = 0;
  plan.processes[3].rank = 1;
  role("tool", RoleKind::service, 1);
  process(1, {4});
  role("large", RoleKind::engine, 2);
  process(1, {0, 1});
  process(1, {2, 3});
  made();
  std::vector<std::int64_t> ranks;
  for (const auto& one : plan.processes) ranks.push_back(sync_rank(plan, plan.weight_syncs.front(), one));
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{1, 2, 0, -1, -1, 3, 5}));
}

TEST_F(Groups, OnlyTheFirstLearnerIsInTheWeightSync) {
  role("engine", RoleKind::engine, 1);
  process(0, {0});
  role("learner", RoleKind::learner, 1);
  process(0, {1});
  process(0, {2});
  plan.weight_syncs.front().world_size = weight_sync_size(plan, plan.weight_syncs.front());
  // Without a rendezvous there are no ranks: the first one of the role.
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[1]), 0);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[2]), -1);
  plan.processes[1].rank = 4;
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), plan.processes[1]), -1);
}

TEST_F(Groups, TheWeightSyncMeetsWhereItsLearnerIs) {
  role("engine", RoleKind::engine, 1);
  process(0, {0});
  role("planner", RoleKind::learner, 0);
  process(0, {});
  role("learner", RoleKind::learner, 1);
  process(2, {1});
  EXPECT_EQ(made(), Names{"weight sync (weight-sync): 2/1 0/0"}) << "a learner without GPUs is no rank";
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 2U);
}

TEST_F(Groups, LearnersWithoutGpusMakeNoWeightSync) {
  role("engine", RoleKind::engine, 2);
  process(0, {0, 1});
  role("learner", RoleKind::learner, 0);
  process(0, {});
  EXPECT_EQ(made(), (Names{"node 0 (node): 0/0 0/1", "engine.0 tensor parallel (tensor-parallel): 0/0 0/1"}));
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 0U);
}

TEST(PlanValue, AProcessReachesItsOwnGpusAndThoseThatItSpawnsOnItsNode) {
  Plan plan;
  for (const auto* name : {"driver", "actor", "other"}) {
    plan.roles.emplace_back();
    plan.roles.back().name = name;
  }
  plan.roles[1].spawned_by = {"other", "driver"};
  const auto add = [&](std::uint32_t role, std::uint32_t index, std::uint32_t node,
                       std::vector<std::uint16_t> gpus) {
    Process one;
    one.role = role;
    one.index = index;
    one.node = node;
    one.gpus = std::move(gpus);
    plan.processes.push_back(one);
  };
  add(0, 0, 0, {2});
  add(0, 1, 1, {});
  add(1, 0, 0, {0, 2});
  add(1, 1, 1, {3});
  add(2, 0, 0, {1});
  EXPECT_EQ(gpus_in_reach(plan, plan.processes[0]), (std::vector<std::uint16_t>{0, 2}));
  EXPECT_EQ(gpus_in_reach(plan, plan.processes[1]), std::vector<std::uint16_t>{3});
  EXPECT_EQ(gpus_in_reach(plan, plan.processes[2]), (std::vector<std::uint16_t>{0, 2}));
  EXPECT_EQ(gpus_in_reach(plan, plan.processes[4]), (std::vector<std::uint16_t>{0, 1, 2}));
  EXPECT_EQ(plan.name_of(plan.processes[3]), "actor.1");
  EXPECT_EQ(plan.find_role("other"), &plan.roles[2]);
  EXPECT_EQ(plan.find_role("actor.1"), nullptr);
}

TEST(PlanValue, WordsOfTwoAreWrittenAsPeopleDo) {
  EXPECT_EQ(name_of(Layer::command_line), "command line");
  EXPECT_EQ(name_of(Layer::site), "site");
  EXPECT_EQ(name_of(GroupKind::tensor_parallel), "tensor-parallel");
  EXPECT_EQ(name_of(GroupKind::weight_sync), "weight-sync");
  EXPECT_EQ(name_of(GroupKind::node), "node");
  EXPECT_EQ(name_of(GroupKind::world), "world");
}

}  // namespace
}  // namespace nlaunch::plan
