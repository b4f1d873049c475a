#include "plan/demand.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using Spread = Demand::Spread;

TEST(Demands, AreWhatEachRoleAsksFor) {
  config::Experiment experiment;
  const auto role = [&](const char* name) -> config::Role& {
    auto& made = experiment.roles.emplace_back();
    made.name.value = name;
    return made;
  };
  role("plain").gpus.value = 3;
  role("counted").count = Located<std::uint32_t>{5, {}};
  auto& per_node = role("per-node");
  per_node.per_node = Located<std::uint32_t>{2, {}};
  per_node.gpus.value = 1;
  role("once").per = Located<config::Role::Per>{config::Role::Per::job, {}};
  auto& everywhere = role("everywhere");
  everywhere.per = Located<config::Role::Per>{config::Role::Per::node, {}};
  everywhere.except = config::Text{"once", {}};
  role("actor").spawned_by = {{"everywhere", {}}, {"plain", {}}};
  const auto demands = demands_of(experiment);
  ASSERT_EQ(demands.size(), 6U);
  const auto told = [&](std::size_t i) {
    return demands[i].name + (demands[i].spread == Spread::count ? " " : " each ") +
           std::to_string(demands[i].number) + " of " + std::to_string(demands[i].gpus);
  };
  EXPECT_EQ(told(0), "plain 1 of 3");
  EXPECT_EQ(told(1), "counted 5 of 0");
  EXPECT_EQ(told(2), "per-node each 2 of 1");
  EXPECT_EQ(told(3), "once 1 of 0");
  EXPECT_EQ(told(4), "everywhere each 1 of 0");
  EXPECT_EQ(told(5), "actor 1 of 0");
  EXPECT_EQ(demands[4].except, 3U);
  EXPECT_EQ(demands[3].except, std::nullopt);
  EXPECT_EQ(demands[5].spawners, (std::vector<std::size_t>{4, 0}));
  EXPECT_TRUE(demands[0].spawners.empty());
}

class MisfitMessage : public PlanFiles {
 protected:
  /// What is said of roles, a line each from line 4 on, on so many nodes of so many GPUs: without excerpts.
  std::string of(const std::string& roles, std::uint32_t nodes, int gpus,
                 const std::string& scheduler = "slurm") {
    const auto plan =
        build_from("roles:\n" + roles,
                   "scheduler: {kind: " + scheduler + "}\nnode: {gpus: " + std::to_string(gpus) + "}\n",
                   {nodes, 0, {}, {}});
    std::string out;
    for (const auto& line : text::split(refusal(plan), '\n')) {
      if (!line.empty() && !line.starts_with(' ')) out += line + "\n";
    }
    return out;
  }
};

TEST_F(MisfitMessage, OfWhatIsOnEachNodeSaysHowManyFitThere) {
  EXPECT_EQ(
      of("  learner: {kind: learner, per_node: 5, gpus: 1, command: [t]}\n", 2, 4),
      "experiment.yaml:4:38: error: role 'learner': 5 processes of 1 GPU on each node do not fit on 2 nodes "
      "× 4 GPUs: 4 fit on each, and 0 GPUs stay idle [plan.does-not-fit]\n"
      "hint: --set roles.learner.per_node=4\n");
}

TEST_F(MisfitMessage, OfAnEngineLargerThanANodeNamesReplicas) {
  EXPECT_EQ(
      of("  engine: {kind: engine, gpus: 8, command: [s]}\n", 1, 4),
      "experiment.yaml:4:32: error: role 'engine': 1 process of 8 GPUs does not fit on 1 node × 4 GPUs: none "
      "fit, and 4 GPUs stay idle [plan.does-not-fit]\n"
      "note: a process cannot span two nodes\n"
      "hint: write `replica: {nodes: 2}` and `gpus: 4` for an engine on several nodes, or --set "
      "roles.engine.gpus=4 (4 GPUs for 'engine')\n");
}

TEST_F(MisfitMessage, OfOneProcessThatFitsNowhereSaysHowManyGpusWould) {
  EXPECT_EQ(of("  tool: {kind: service, gpus: 8, command: [s]}\n", 1, 4),
            "experiment.yaml:4:31: error: role 'tool': 1 process of 8 GPUs does not fit on 1 node × 4 GPUs: "
            "none fit, and 4 GPUs stay idle [plan.does-not-fit]\n"
            "note: a process cannot span two nodes\n"
            "hint: --set roles.tool.gpus=4 (4 GPUs for 'tool')\n");
}

TEST_F(MisfitMessage, OfRolesThatTogetherWantMoreThanANodeNamesASplit) {
  constexpr const char* kLearner = "  learner: {kind: learner, per_node: 4, gpus: 1, command: [t]}\n";
  EXPECT_EQ(
      of(std::string(kLearner) + "  engine: {kind: engine, count: 2, gpus: 2, command: [s]}\n", 1, 4,
         "local"),
      "experiment.yaml:5:33: error: role 'engine': 2 processes of 2 GPUs do not fit on 1 node × 4 GPUs: "
      "none fit, and 0 GPUs stay idle [plan.does-not-fit]\n"
      "note: experiment.yaml:4:3: role 'learner' uses 4 GPUs on each node\n"
      "note: a process cannot span two nodes\n"
      "hint: --set roles.learner.per_node=2 --set roles.engine.count=1 (2 GPUs for 'learner' on each "
      "node, 2 for 'engine')\n");
  EXPECT_TRUE(
      of(std::string(kLearner) +
             "  engine: {kind: engine, gpus: 4, command: [s, --tensor-parallel-size, 4]}\n",
         1, 4, "local")
          .ends_with("hint: --set roles.learner.per_node=2 --set roles.engine.gpus=2, with "
                     "`--tensor-parallel-size 2` in its command (2 GPUs for 'learner' on each node, 2 for "
                     "'engine')\n"));
}

TEST_F(MisfitMessage, OfReplicasSaysHowLargeOneIs) {
  EXPECT_EQ(
      of("  engine: {kind: engine, count: 2, replica: {nodes: 2, per_node: 2}, gpus: 2, command: [s]}\n", 3,
         4),
      "experiment.yaml:4:33: error: role 'engine': 2 replicas of 2 nodes × 2 processes of 2 GPUs do not "
      "fit on 3 nodes × 4 GPUs: 1 fits, and 4 GPUs stay idle [plan.does-not-fit]\n"
      "note: a process cannot span two nodes\n"
      "hint: --set roles.engine.count=1, or --nodes 4\n");
}

TEST_F(MisfitMessage, OfSomeThatFitSaysHowManyAndOnHowManyNodesAllWould) {
  constexpr const char* kRole = "  engine: {kind: engine, count: 2, gpus: 2, command: [s]}\n";
  const std::string first =
      "experiment.yaml:4:33: error: role 'engine': 2 processes of 2 GPUs do not fit on 1 node × 3 GPUs: 1 "
      "fits, and 1 GPU stays idle [plan.does-not-fit]\nnote: a process cannot span two nodes\n";
  EXPECT_EQ(of(kRole, 1, 3), first + "hint: --set roles.engine.count=1, or --nodes 2\n");
  EXPECT_EQ(of(kRole, 1, 3, "local"), first + "hint: --set roles.engine.count=1\n") << "there is one node";
}

TEST_F(MisfitMessage, NamesTheOthersThatTakeGpus) {
  EXPECT_EQ(
      of("  learner: {kind: learner, per_node: 1, gpus: 2, command: [t]}\n"
         "  engine: {kind: engine, count: 3, gpus: 1, command: [s]}\n"
         "  tool: {kind: service, command: [x]}\n"
         "  judge: {kind: engine, count: 2, gpus: 1, command: [s]}\n",
         1, 4),
      "experiment.yaml:5:33: error: role 'engine': 3 processes of 1 GPU do not fit on 1 node × 4 GPUs: "
      "2 fit, and 0 GPUs stay idle [plan.does-not-fit]\n"
      "note: experiment.yaml:4:3: role 'learner' uses 2 GPUs on each node\n"
      "note: experiment.yaml:7:3: role 'judge' uses 2 GPUs\n"
      "hint: --set roles.engine.count=2, or --nodes 3\n"
      "experiment.yaml:7:32: error: role 'judge': 2 processes of 1 GPU do not fit on 1 node × 4 GPUs: "
      "none fit, and 0 GPUs stay idle [plan.does-not-fit]\n"
      "note: experiment.yaml:4:3: role 'learner' uses 2 GPUs on each node\n"
      "note: experiment.yaml:5:3: role 'engine' uses 3 GPUs\n"
      "hint: --nodes 3, or --set roles.engine.count=1 --set roles.judge.count=1 (2 GPUs for 'learner' on "
      "each node, 1 for 'engine', 1 for 'judge')\n"
      "2 errors\n");
}

TEST_F(MisfitMessage, OfWhatSharesNamesTheRoleWhoseGpusItIsOn) {
  EXPECT_EQ(
      of("  learner: {kind: learner, count: 2, gpus: 1, command: [t]}\n"
         "  engine: {kind: engine, count: 3, gpus: 1, share_gpus_with: learner, command: [s]}\n"
         "  judge: {kind: engine, gpus: 1, command: [s]}\n",
         1, 4),
      "experiment.yaml:5:33: error: role 'engine': 3 processes of 1 GPU do not fit on the GPUs of 'learner': "
      "2 fit [plan.does-not-fit]\n"
      "note: experiment.yaml:4:3: role 'learner' uses 2 GPUs\n"
      "hint: --set roles.engine.count=2\n");
}

TEST_F(MisfitMessage, OfMemoryNamesAllThatAreOnTheGpuAtOnce) {
  constexpr const char* kLearner = "  learner: {kind: learner, gpus: 1, gpu_memory: 0.6, command: [t]}\n";
  EXPECT_EQ(
      of(std::string(kLearner) +
             "  engine: {kind: engine, gpus: 1, share_gpus_with: learner, gpu_memory: 0.3, command: [s]}\n"
             "  judge: {kind: engine, gpus: 1, share_gpus_with: learner, gpu_memory: 0.2, command: [s]}\n"
             "  free: {kind: engine, gpus: 1, gpu_memory: 0.9, command: [s]}\n",
         1, 4),
      "experiment.yaml:6:72: error: the roles on GPU 0 of node 0 request 1.1 times its memory: 'learner' "
      "0.6, 'engine' 0.3, 'judge' 0.2 [plan.gpu-memory]\n"
      "note: experiment.yaml:4:49: the share of 'learner' is here\n"
      "note: experiment.yaml:5:73: the share of 'engine' is here\n"
      "hint: the shares of roles that use one GPU at the same time must add up to at most 1\n");
  EXPECT_TRUE(build_from(
      "roles:\n" + std::string(kLearner) +
          "  a: {kind: engine, gpus: 1, share_gpus_with: learner, gpu_memory: 0.3, command: [s]}\n"
          "  b: {kind: engine, gpus: 1, share_gpus_with: learner, gpu_memory: 0.1, command: [s]}\n",
      "scheduler: {kind: slurm}\nnode: {gpus: 1}\n"))
      << "0.6 + 0.3 + 0.1 has no exact sum";
}

}  // namespace
}  // namespace nlaunch::plan
