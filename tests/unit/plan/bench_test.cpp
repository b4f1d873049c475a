#include "plan/bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class BenchPlan : public PlanFiles {
 protected:
  static constexpr const char* kSite = "scheduler: {kind: slurm}\nnode: {gpus: 4}\n";
  /// Two nodes with a learner and an engine of two GPUs each.
  static constexpr const char* kTwoNodes = R"(nodes: 2
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, command: [t]}
  engine: {kind: engine, per_node: 1, gpus: 2, command: [s]}
)";
  static constexpr const char* kOneGpu = "roles:\n  learner: {kind: learner, gpus: 1, command: [t]}\n";

  static std::string bench_of(const std::string& group,
                              const std::string& step = "[{op: all_reduce, size: 1MB}]") {
    return "bench:\n  workloads:\n    sync: {group: " + group + ", step: " + step + "}\n";
  }
  Lines groups_of(const std::string& group) {
    const auto plan = plan_of(kTwoNodes + bench_of(group), kSite);
    Lines names;
    for (const auto index : plan.bench.workloads.at(0).groups) names.push_back(plan.groups.at(index).name);
    return names;
  }
};

TEST_F(BenchPlan, AWorkloadIsForEachGroupOfAKindOrForOneByItsName) {
  EXPECT_EQ(groups_of("node"), (Lines{"node 0", "node 1"}));
  EXPECT_EQ(groups_of("world"), Lines{"learner world"});
  EXPECT_EQ(groups_of("tensor_parallel"), (Lines{"engine.0 tensor parallel", "engine.1 tensor parallel"}));
  EXPECT_EQ(groups_of("weight_sync"), Lines{"weight sync"});
  EXPECT_EQ(groups_of("node 0"), Lines{"node 0"});
  EXPECT_EQ(groups_of("engine.1 tensor parallel"), Lines{"engine.1 tensor parallel"});
}

TEST_F(BenchPlan, SaysWhyThereIsNoSuchGroup) {
  EXPECT_EQ(mistakes(kOneGpu + bench_of("weight_sync"), kSite),
            Lines{"7:19 no group of kind weight_sync has two or more ranks in this plan "
                  "-> the plan has no groups; give the roles more GPUs, or remove the workload"});
  constexpr const char* kLearners = "roles:\n  learner: {kind: learner, count: 2, gpus: 1, command: [t]}\n";
  EXPECT_EQ(mistakes(kLearners + bench_of("tensor_parallel"), kSite),
            Lines{"7:19 no group of kind tensor_parallel has two or more ranks in this plan -> the plan has "
                  "node 0, learner world; give the roles more GPUs, or remove the workload"});
  EXPECT_EQ(mistakes(kLearners + bench_of("learner wrld"), kSite),
            Lines{"7:19 unknown group 'learner wrld' -> did you mean 'learner world'?"});
  EXPECT_EQ(mistakes(kLearners + bench_of("weight_snyc"), kSite),
            Lines{"7:19 unknown group 'weight_snyc' -> did you mean 'weight_sync'?"});
  EXPECT_EQ(mistakes(kLearners + bench_of("everything"), kSite),
            Lines{"7:19 unknown group 'everything' -> write a kind (node, world, tensor_parallel, "
                  "weight_sync), or a group of the plan: node 0, learner world"});
}

TEST_F(BenchPlan, OperationsThatTheBackendLacksAreToldAtTheirPlaces) {
  constexpr const char* kStep =
      "[{op: reduce_scatter, size: 1MB}, {op: all_reduce, size: 1MB}, {op: reduce_scatter, size: 1MB}]";
  const std::string why =
      " 'sync' uses reduce_scatter, which Gloo does not support -> use all_reduce or all_gather, which both "
      "backends support, or --set weight_sync.backend=nccl";
  const auto gloo = std::string("weight_sync: {backend: gloo}\n") + kTwoNodes;
  EXPECT_EQ(mistakes(gloo + bench_of("world", kStep), kSite), (Lines{"10:33" + why, "10:95" + why}));
  const auto refused = build_from(gloo + bench_of("world", kStep), kSite);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().items().front().id, "plan.bench-gloo");
  EXPECT_EQ(mistakes(gloo + bench_of("world"), kSite), Lines{});
  EXPECT_EQ(mistakes(kTwoNodes + bench_of("world", kStep), kSite), Lines{}) << "NCCL has it";
}

TEST_F(BenchPlan, IsReadBackFromThePlan) {
  const auto plan = plan_of(std::string(kTwoNodes) + R"(bench:
  timeout: 2m
  workloads:
    sync: {group: weight_sync, busy: true, steps: 7, warm_up: 2, budget: 9ms, scaling: 90%, step: [{op: broadcast, size: 1MB, count: 3}]}
    tp: {group: tensor_parallel, busbw: 100GB/s, step: [{op: all_reduce, type: bf16, shape: [2, 8]}]}
)",
                            kSite);
  const auto text = to_json(plan).dump();
  const auto back = from_json(text, "plan.json");
  ASSERT_TRUE(back) << render(back.error());
  EXPECT_EQ(to_json(*back).dump(), text);
  EXPECT_EQ(back->bench.timeout, 2min);
  ASSERT_EQ(back->bench.workloads.size(), 2U);
  const auto& [work, groups, targets, origin] = back->bench.workloads[0];
  EXPECT_EQ(work.name, "sync");
  EXPECT_EQ(work.steps, 7U);
  EXPECT_EQ(work.warm_up, 2U);
  EXPECT_TRUE(work.busy);
  EXPECT_EQ(work.step, (std::vector<Operation>{{Collective::broadcast, 1'000'000, DataType::f32, 3}}));
  EXPECT_EQ(groups, std::vector<std::uint32_t>{5});
  EXPECT_DOUBLE_EQ(targets.budget, 0.009);
  EXPECT_DOUBLE_EQ(targets.scaling, 0.9);
  EXPECT_EQ(without_folder(origin), "experiment.yaml:10:5");
  EXPECT_EQ(back->bench.workloads[1].groups, (std::vector<std::uint32_t>{3, 4}));
  EXPECT_FALSE(to_json(plan_of(kTwoNodes, kSite)).contains("bench"));
}

TEST_F(BenchPlan, AGroupThatThePlanLacksIsDamage) {
  nlohmann::json written = to_json(plan_of(kTwoNodes + bench_of("world"), kSite));
  written["bench"]["workloads"][0]["groups"][0] = "node 7";
  const auto back = from_json(written.dump(), "plan.json");
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().first_message(), "'plan.json' cannot be read as a plan: a workload names no group");
}

}  // namespace
}  // namespace nlaunch::plan
