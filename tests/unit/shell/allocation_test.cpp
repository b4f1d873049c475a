#include "shell/allocation.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

TEST(Allocation, NamesItsNodesByMarkers) {
  EXPECT_EQ(Allocation::host(3), "rec-node-3");
  EXPECT_EQ(Allocation::address(0), "10.77.0.1");
  EXPECT_EQ(Allocation::address(248), "10.77.0.249");
  EXPECT_EQ(Allocation::address(249), "10.77.1.0");
  EXPECT_EQ(Allocation{.nodes = 1}.host_list(), "rec-node-0");
  EXPECT_EQ(Allocation{.nodes = 4}.host_list(), "rec-node-[0-3]");
}

TEST(Allocation, KnowsItsNodesByNameAndAddress) {
  for (const std::uint32_t node : {0U, 1U, 248U, 249U, 250U, 9999U}) {
    EXPECT_EQ(node_of(Allocation::host(node)), node);
    EXPECT_EQ(node_of(Allocation::address(node)), node);
  }
  EXPECT_EQ(node_of("rec-node-2.cluster.local"), 2U);
  for (const auto* other :
       {"", "node-1", "rec-node-", "rec-node-x", "10.77.0", "10.77.0.0", "10.78.0.1", "10.77.a.1"})
    EXPECT_EQ(node_of(other), std::nullopt) << other;
}

TEST(Allocation, ReadsListsOfItsHosts) {
  using Nodes = std::vector<std::uint32_t>;
  EXPECT_EQ(nodes_in("rec-node-[0-3]"), (Nodes{0, 1, 2, 3}));
  EXPECT_EQ(nodes_in("rec-node-[0-1,4],rec-node-7 rec-node-9"), (Nodes{0, 1, 4, 7, 9}));
  EXPECT_EQ(nodes_in("10.77.0.3"), (Nodes{2}));
  for (const auto* other : {"", "login", "rec-node-[", "rec-node-[x]", "rec-node-[3-1]", "other-[0-3]"})
    EXPECT_TRUE(nodes_in(other).empty()) << other;
}

TEST(Allocation, OfAHeterogeneousJobHasARangeOfNodesForEachComponent) {
  Allocation job{.nodes = 5};
  EXPECT_EQ(job.component(0)->nodes, 5U);
  EXPECT_FALSE(job.component(1));
  job.components = {{0, 1, 1, 0}, {1, 4, 2, 8}};
  EXPECT_EQ(job.component(1)->first, 1U);
  EXPECT_FALSE(job.component(2));
  EXPECT_EQ(job.component_of(0).gpus_per_node, 0U);
  EXPECT_EQ(job.component_of(4).gpus_per_node, 8U);
  EXPECT_EQ(Allocation::host_list(*job.component(1)), "rec-node-[1-4]");
}

TEST(Allocation, SomeTasksStandForOthers) {
  const std::vector<Task> one_node{{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0}};
  EXPECT_EQ(recorded_for(one_node, false), (std::vector<std::size_t>{0, 1, 1, 3}));
  EXPECT_EQ(recorded_for(one_node, true), (std::vector<std::size_t>{0, 1, 2, 3}));
  std::vector<Task> many;
  for (std::uint32_t node = 0; node < 17; ++node) many.push_back({node, 0, node});
  auto wanted = std::vector<std::size_t>(17, 1);
  wanted.front() = 0;
  wanted.back() = 16;
  EXPECT_EQ(recorded_for(many, false), wanted);
  many.pop_back();
  EXPECT_EQ(recorded_for(many, false).at(7), 7U);
}

TEST(Allocation, TasksOfEachNodeAreCounted) {
  EXPECT_EQ(tasks_per_node({{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1, 1}, {4, 0, 2}}), "2(x2),1");
  EXPECT_EQ(tasks_per_node({}), "");
}

}  // namespace
}  // namespace nlaunch::shell
