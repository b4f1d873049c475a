#include "preflight/groups/group_outcome.h"

#include <gtest/gtest.h>

#include "preflight/groups/expectations.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

const GroupTrial& group_of(const Observations& observations, std::string_view name) {
  return *std::ranges::find(observations.groups, name, &GroupTrial::name);
}

TEST(GroupOutcome, AGroupIsCompleteWhenEachRankHasDoneAll) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  const auto& group = group_of(observations, "node 0");
  EXPECT_TRUE(complete(observations, group));
  observations.reports[1].groups["node 0"].workloads.push_back({"step", 0, {}});
  EXPECT_FALSE(complete(observations, group));
  observations.reports[1].groups["node 0"].workloads.clear();
  observations.reports[1].groups["node 0"].results.pop_back();
  EXPECT_FALSE(complete(observations, group));
  observations.reports[1].groups.erase("node 0");
  EXPECT_FALSE(complete(observations, group));
  EXPECT_EQ(progress_of(observations, group, 1), nullptr);
  EXPECT_NE(progress_of(observations, group, 0), nullptr);
}

TEST(GroupOutcome, FindsTheErrorOfAKindInAGroup) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  observations.reports[0].errors = {{"join", "other", "failed", "a"}, {"join", "node 0", "deadline", "b"}};
  observations.reports[1].errors = {{"join", "node 0", "failed", "c"}, {"join", "node 0", "failed", "d"}};
  const auto& group = group_of(observations, "node 0");
  const auto told = find_error(observations, group, "failed");
  EXPECT_EQ(told.rank, 1U);
  EXPECT_EQ(told.error->text, "c");
  EXPECT_EQ(find_error(observations, group, "deadline").error->text, "b");
  EXPECT_EQ(find_error(observations, group, "unavailable").error, nullptr);
}

TEST(GroupOutcome, FindsTheFirstWrongData) {
  const Machine machine(3, 0);
  auto observations = machine.healthy();
  const auto& group = group_of(observations, "node 0");
  EXPECT_EQ(find_wrong_data(observations, group).result, nullptr);
  observations.reports[0].groups.clear();
  observations.reports[1].groups["node 0"].results[2].wrong = 1;
  observations.reports[2].groups["node 0"].results[0].wrong = 1;
  const auto wrong = find_wrong_data(observations, group);
  EXPECT_EQ(wrong.rank, 1U);
  EXPECT_EQ(wrong.result, &observations.reports[1].groups["node 0"].results[2]);
}

TEST(GroupOutcome, OfEachSizeTheSlowestRankIsMeasured) {
  const Machine machine(2, 0);
  auto observations = machine.healthy();
  for (const std::size_t rank : {0U, 1U}) {
    auto& results = observations.reports[rank].groups["node 0"].results;
    results[0].seconds = rank == 0 ? 2 : 1;
    results[0].busbw = rank == 0 ? 20 : 10;
    results[1].seconds = rank == 0 ? 1 : 2;
    results[1].busbw = rank == 0 ? 10 : 20;
    results[2].seconds = 3;
    results[2].busbw = rank == 0 ? 30 : 31;
  }
  const auto all = measured(observations, group_of(observations, "node 0"));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].busbw, 20);
  EXPECT_EQ(all[1].busbw, 20);
  EXPECT_EQ(all[2].busbw, 31);
  EXPECT_EQ(all[1].seconds, 2);
  EXPECT_EQ(all[1].bytes, 1U << 20U);
  EXPECT_EQ(all[1].ranks, 2U);
  EXPECT_EQ(all[1].backend, "nccl");
  EXPECT_EQ(all[1].op, "all_reduce");
}

/// Three ranks in one group, two of them in another, and a third one of the other rank.
struct Three : Machine {
  Three() : Machine(3, 0) {
    plan.groups.clear();
    add_group("all", plan::GroupKind::node, Backend::nccl, 0, 3);
    add_group("two", plan::GroupKind::world, Backend::nccl, 0, 2);
    add_group("other", plan::GroupKind::world, Backend::nccl, 1, 2);
  }
};

TEST(IsConsequence, IfAGroupBeforeItDidNotEnd) {
  const Three machine;
  auto observations = machine.healthy();
  const auto first = [&] { return is_consequence(observations, observations.groups[0]); };
  const auto second = [&] { return is_consequence(observations, observations.groups[1]); };
  observations.reports[0].groups["two"].results.clear();
  EXPECT_FALSE(second());
  observations.reports[2].groups["all"].results.clear();
  EXPECT_FALSE(first());
  EXPECT_TRUE(second());
  observations.groups[0].not_run = "not run";
  EXPECT_FALSE(second());
  observations.groups[0].not_run.clear();
  observations.apart = true;
  EXPECT_FALSE(second());
}

TEST(IsConsequence, NotOfAnErrorOfItsOwn) {
  const Three machine;
  auto observations = machine.healthy();
  observations.reports[2].groups["all"].results.clear();
  observations.reports[0].groups["two"].results.clear();
  observations.reports[0].errors = {{"join", "two", "failed", "no route"}};
  EXPECT_FALSE(is_consequence(observations, observations.groups[1]));
  // What ran out of time may have waited for a rank that was still in the group before.
  observations.reports[0].errors = {{"join", "two", "deadline", "not done"}};
  EXPECT_TRUE(is_consequence(observations, observations.groups[1]));
  observations.groups[0].members = {2};
  EXPECT_FALSE(is_consequence(observations, observations.groups[1])) << "they have no rank in common";
}

TEST(NamesOf, CallsRanksOfOneRoleByTheirNumbers) {
  const Machine machine(2, 2);
  const auto observations = machine.healthy();
  EXPECT_EQ(names_of(observations, {0, 1}, 0), "ranks 0, 1");
  EXPECT_EQ(names_of(observations, {1}, 0), "rank 1");
  EXPECT_EQ(names_of(observations, {0, 2}, 0), "learner rank 0 (GPU 0), engine.0 (GPU 2)");
  EXPECT_EQ(names_of(observations, {2, 3}, 2), "engine.0 (GPU 2), engine.1 (GPU 3)");
  EXPECT_EQ(names_of(observations, {0, 1}, 2), "learner rank 0 (GPU 0), learner rank 1 (GPU 1)");
}

TEST(DidNotJoin, NamesThoseWhoDid) {
  const Machine machine(4, 0);
  auto observations = machine.healthy();
  observations.deadlines.join = 1500ms;
  EXPECT_EQ(did_not_join(observations, {1}, {0, 2, 3}),
            "learner rank 1 (GPU 1) did not join within 1.5 s; ranks 0, 2, 3 did");
  EXPECT_EQ(did_not_join(observations, {1, 2}, {}),
            "learner rank 1 (GPU 1), learner rank 2 (GPU 2) did not join within 1.5 s; no rank did");
}

TEST(SlowSettings, AreThoseThatTakeATransportAway) {
  Machine machine(1, 1);
  for (const auto* name : {"NCCL_P2P_DISABLE", "NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING"})
    machine.set(0, name, "1");
  machine.set(1, "CUDA_LAUNCH_BLOCKING", "1");
  machine.set(1, "NCCL_PROTO", "LL");
  EXPECT_EQ(slow_settings(machine.node.processes[0]),
            (Lines{"NCCL_P2P_DISABLE=1", "CUDA_LAUNCH_BLOCKING=1"}));
  const auto observations = machine.observations();
  EXPECT_EQ(slow_settings(observations, group_of(observations, "node 0")),
            "NCCL_P2P_DISABLE=1 is set for learner; CUDA_LAUNCH_BLOCKING=1 is set for learner; "
            "CUDA_LAUNCH_BLOCKING=1 is set for engine; NCCL_PROTO=LL is set for engine");
}

plan::Expectation floor_of(std::optional<std::uint32_t> gpus, std::string_view nodes,
                           std::uint64_t size = 4096, double min = 1e9) {
  plan::Expectation out;
  out.gpus_per_node = gpus;
  if (!nodes.empty()) out.nodes = VersionRange::parse(nodes).value();
  out.size = size;
  out.min = min;
  out.origin = "site.yaml:1:1";
  return out;
}

TEST(Expectations, FitAGroupWithAsManyRanksOnEachOfAsManyNodes) {
  const Machine machine(4, 0);
  auto observations = machine.observations();
  const auto& group = group_of(observations, "node 0");
  const auto fit = [&](std::optional<std::uint32_t> gpus, std::string_view nodes) {
    return fits(floor_of(gpus, nodes), observations, group);
  };
  EXPECT_TRUE(fit(4, "1"));
  EXPECT_TRUE(fit(std::nullopt, ""));
  EXPECT_FALSE(fit(2, "1"));
  EXPECT_FALSE(fit(4, ">1"));
  observations.ranks[2].node = observations.ranks[3].node = 1;
  EXPECT_TRUE(fit(2, "2"));
  EXPECT_FALSE(fit(4, "2"));
  observations.ranks[2].node = 0;
  EXPECT_FALSE(fit(3, "2")) << "the other node has one";
  EXPECT_TRUE(fit(std::nullopt, "2"));
}

TEST(Expectations, FitAnAllReduceWithSteadyTimesAlone) {
  const Machine machine(4, 0);
  const auto observations = machine.observations();
  auto group = group_of(observations, "node 0");
  group.neighbours = true;
  EXPECT_FALSE(fits(floor_of(4, "1"), observations, group));
  group.neighbours = false;
  group.kind = plan::GroupKind::weight_sync;
  EXPECT_FALSE(fits(floor_of(4, "1"), observations, group));
  group.kind = plan::GroupKind::node;
  group.backend = Backend::gloo;
  EXPECT_FALSE(fits(floor_of(4, "1"), observations, group));
}

TEST(Expectations, AreTriedWithWholeElements) {
  EXPECT_EQ(tried_size(floor_of(4, "1", 4096)), 4096U);
  EXPECT_EQ(tried_size(floor_of(4, "1", 4099)), 4096U);
  EXPECT_EQ(tried_size(floor_of(4, "1", 3)), 0U);
}

TEST(Expectations, StandBesideWhatWasMeasured) {
  Machine machine(4, 0);
  auto high = floor_of(4, "1", 1U << 20U, 40e9);
  high.limit = 400e9;
  auto low = floor_of(4, "1", 1U << 20U, 30e9);
  low.limit = 450e9;
  machine.plan.expected.all_reduce_busbw = {high, low, floor_of(2, "1", 1U << 20U, 90e9),
                                            floor_of(4, "1", 128U << 20U, 60e9)};
  const auto observations = machine.healthy();
  auto all = measurements(observations);
  all.push_back(all.front());
  all.back().group = "of another plan";
  set_expectations(observations, all);
  EXPECT_EQ(all[1].bytes, 1U << 20U);
  EXPECT_EQ(all[1].kind, "node");
  EXPECT_EQ(all[1].floor, 40e9);
  EXPECT_EQ(all[1].limit, 450e9);
  EXPECT_EQ(all[0].floor, 0) << "8 B";
  EXPECT_EQ(all[0].limit, 450e9);
  EXPECT_EQ(all[3].floor, 60e9);
  EXPECT_EQ(all[4].op, "send_recv");
  EXPECT_EQ(all[4].floor, 0);
  EXPECT_EQ(all[4].limit, 0);
  EXPECT_EQ(all.back().kind, "");
}

}  // namespace
}  // namespace nlaunch::preflight
