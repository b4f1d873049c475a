#include "plan/weight_sync.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/groups.h"
#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kSite = "scheduler: {kind: slurm}\nnode: {gpus: 4}\n";
constexpr const char* kRoles =
    "nodes: 2\n"
    "roles:\n"
    "  learner: {kind: learner, per_node: 2, gpus: 1, rendezvous: torch, command: [t]}\n"
    "  engine: {kind: engine, count: 2, gpus: 2, command: [s]}\n";

class WeightSyncs : public PlanFiles {
 protected:
  using Lines = std::vector<std::string>;
  Plan with(const std::string& sync) { return plan_of(kRoles + ("weight_sync: " + sync), kSite); }
  Lines refused(const std::string& sync) { return mistakes(kRoles + ("weight_sync: " + sync), kSite); }
  static Lines sync_groups(const Plan& plan) {
    Lines out;
    for (const auto& group : plan.groups) {
      if (group.kind == GroupKind::weight_sync)
        out.push_back(group.name + " " + std::string(name_of(group.backend)) + " " +
                      std::to_string(group.members.size()));
    }
    return out;
  }
};

TEST_F(WeightSyncs, SeveralGroupsEachHaveAnOrderAPortAndRanks) {
  const auto plan = with(
      "[{name: stage0, order: [learner.0, engine]}, {name: stage1, order: [engine.1, learner.2], master: "
      "learner.2}]\n");
  EXPECT_EQ(sync_groups(plan), (Lines{"weight sync stage0 nccl 5", "weight sync stage1 nccl 3"}));
  ASSERT_EQ(plan.weight_syncs.size(), 2U);
  EXPECT_NE(plan.weight_syncs[0].port, plan.weight_syncs[1].port);
  EXPECT_EQ(plan.weight_syncs[1].world_size, 3U);
  const auto& engine = *find_process(plan, "engine.1");
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs[0], engine), 3);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs[1], engine), 0);
  EXPECT_EQ(sync_node(plan, plan.weight_syncs[0]), 0U);
  EXPECT_EQ(sync_node(plan, plan.weight_syncs[1]), 1U) << "learner.2 is on the second node";
}

TEST_F(WeightSyncs, SurviveTheFrozenPlan) {
  for (const auto* sync : {"{backend: disk, path: weights}\n", "{backend: none}\n", "{backend: nccl}\n",
                           "[{name: a, order: [learner.0, engine]}, {name: b, backend: nixl}]\n"}) {
    const auto plan = with(sync);
    const auto text = to_json(plan).dump();
    const auto read = from_json(text, "plan.json");
    ASSERT_TRUE(read) << sync << render(read.error());
    EXPECT_EQ(to_json(*read).dump(), text) << sync;
    EXPECT_EQ(read->backend, Backend::nccl);
  }
}

TEST_F(WeightSyncs, APlanOfAnEarlierReleaseSaysWhatAllGroupsTalkThrough) {
  auto old = nlohmann::json::parse(to_json(with("{backend: nccl}\n")).dump());
  EXPECT_FALSE(old.contains("backend"));
  old["weight_sync"]["backend"] = "gloo";
  EXPECT_EQ(from_json(old.dump(), "x")->backend, Backend::gloo);
  old["weight_sync"] = nlohmann::json::array();
  EXPECT_EQ(from_json(old.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: 'weight_sync' is empty");
}

TEST_F(WeightSyncs, WithoutRanksThereIsNoGroup) {
  for (const auto* sync : {"{backend: disk, path: weights}\n", "{backend: none}\n", "{backend: nixl}\n"}) {
    const auto plan = with(sync);
    EXPECT_EQ(sync_groups(plan), Lines{}) << sync;
    EXPECT_EQ(plan.backend, Backend::nccl);
  }
  EXPECT_EQ(with("{backend: nixl}\n").weight_syncs.front().world_size, 5U)
      << "who is in it has a number there, too";
  EXPECT_EQ(with("{backend: disk, path: weights}\n").weight_syncs.front().path,
            folder_.string() + "/weights");
}

TEST_F(WeightSyncs, OfIpcNeedEachEngineOnALearnersGpu) {
  EXPECT_EQ(
      refused("{backend: ipc}\n"),
      (Lines{"7:24 ipc passes weights within one GPU, but no learner is on GPU 2 of node 0, which engine.0 "
             "uses -> write `share_gpus_with: LEARNER` for the role 'engine', or backend: nccl"}));
  const auto plan = plan_of(
      "nodes: 2\nweight_sync: {backend: ipc}\nroles:\n"
      "  learner: {kind: learner, per_node: 4, gpus: 1, command: [t]}\n"
      "  engine: {kind: engine, per_node: 2, gpus: 2, share_gpus_with: learner, command: [s]}\n",
      kSite);
  EXPECT_EQ(sync_groups(plan), Lines{});
}

TEST_F(WeightSyncs, OnCpuSlotsOtherGroupsTalkThroughGloo) {
  const auto plan = plan_of(
      "weight_sync: {backend: disk, path: /shared}\ncpu_slots: true\nroles:\n"
      "  learner: {kind: learner, per_node: 2, gpus: 1, command: [t]}\n",
      "scheduler: {kind: slurm}\nnode: {gpus: 0}\n");
  EXPECT_EQ(plan.backend, Backend::gloo);
  EXPECT_TRUE(plan.node.cpu_slots);
}

TEST_F(WeightSyncs, MeetWhereTheFirstOfThemIsThoughNoGroupIsTried) {
  const auto plan = with("{backend: nixl, order: [learner.2, engine]}\n");
  EXPECT_EQ(sync_node(plan, plan.weight_syncs.front()), 1U);
}

TEST_F(WeightSyncs, OfDiskCannotHaveAPathThatNamesItself) {
  EXPECT_EQ(refused("{backend: disk, path: \"${weight_sync.path}/x\"}\n"),
            (Lines{"7:37 'path' cannot refer to '${weight_sync.path}' -> write the directory, or a var that "
                   "contains it: ${vars.weights}"}));
}

TEST_F(WeightSyncs, NameProcessesOfReplicas) {
  constexpr const char* kReplicas =
      "nodes: 3\nroles:\n"
      "  learner: {kind: learner, gpus: 1, command: [t]}\n"
      "  engine: {kind: engine, replica: {nodes: 2}, gpus: 2, command: [s]}\n"
      "weight_sync: {order: [engine.0.1, learner.0]}\n";
  EXPECT_EQ(plan_of(kReplicas, kSite).weight_syncs.front().world_size, 3U);
}

TEST_F(WeightSyncs, AreNamedInReferences) {
  const auto of = [&](const std::string& sync, const std::string& text) {
    return mistakes("weight_sync: " + sync +
                        "\nroles:\n  learner: {kind: learner, gpus: 1, command: [t]}\n"
                        "  engine: {kind: engine, gpus: 1, command: [\"" +
                        text + "\"]}\n",
                    kSite);
  };
  constexpr const char* kTwo =
      "[{name: a, order: [learner.0, engine]}, {name: b, order: [engine, learner.0]}]";
  for (const auto* right : {"${weight_sync.b.host}:${weight_sync.b.port}", "${weight_sync.world_size}",
                            "${self.sync_rank.b}", "${self.sync_rank}", "${weight_sync.a.backend}"})
    EXPECT_EQ(of(kTwo, right), Lines{}) << right;
  EXPECT_EQ(of(kTwo, "${weight_sync.c.host}"),
            (Lines{"6:46 unknown name '${weight_sync.c.host}': did you mean '${weight_sync.a.host}'?"}));
  EXPECT_EQ(of(kTwo, "${weight_sync.b.hosts}"),
            (Lines{"6:46 unknown name '${weight_sync.b.hosts}': did you mean '${weight_sync.b.host}'?"}));
  EXPECT_EQ(
      of("{backend: nccl}", "${self.sync_rank.a}"),
      (Lines{"6:46 '${self.sync_rank.a}': the experiment has one weight-sync group, which has no name"}));
  EXPECT_EQ(of(kTwo, "${weight_sync.path}"),
            (Lines{"6:46 '${weight_sync.path}': only backend: disk has a path"}));
}

}  // namespace
}  // namespace nlaunch::plan
