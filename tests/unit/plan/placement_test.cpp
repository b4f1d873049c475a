#include "plan/placement.h"

#include <gtest/gtest.h>

namespace nlaunch::plan {
namespace {

using Spread = Demand::Spread;

std::vector<std::uint32_t> nodes_of(const std::vector<Placed>& placed) {
  std::vector<std::uint32_t> nodes;
  for (const auto& process : placed) nodes.push_back(process.node);
  return nodes;
}

TEST(Placement, PerNodeComesFirstAndCountIsPacked) {
  const auto placement =
      place({{"engine", Spread::count, 6, 1, {}, {}}, {"learner", Spread::per_node, 1, 1, {}, {}}}, 2, 4);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(nodes_of(placement.by_demand[1]), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(nodes_of(placement.by_demand[0]), (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(placement.by_demand[1][0].gpus, (std::vector<std::uint16_t>{0}));
  EXPECT_EQ(placement.by_demand[0][2].gpus, (std::vector<std::uint16_t>{3}));
  EXPECT_TRUE(placement.idle.empty());
}

TEST(Placement, AProcessNeverSpansTwoNodes) {
  const auto placement =
      place({{"learner", Spread::per_node, 1, 1, {}, {}}, {"engine", Spread::count, 12, 2, {}, {}}}, 8, 4);
  ASSERT_EQ(placement.misfits.size(), 1U);
  EXPECT_EQ(placement.misfits[0].demand, 1U);
  EXPECT_EQ(placement.misfits[0].fit, 8U);
  EXPECT_EQ(placement.misfits[0].idle, 8U);
  EXPECT_EQ(placement.misfits[0].on_nodes, 12U);
}

TEST(Placement, WhatFitsOnNoNodeHasNoNumberOfNodes) {
  const auto placement = place({{"engine", Spread::count, 1, 8, {}, {}}}, 2, 4);
  ASSERT_EQ(placement.misfits.size(), 1U);
  EXPECT_EQ(placement.misfits[0].fit, 0U);
  EXPECT_EQ(placement.misfits[0].on_nodes, std::nullopt);
}

TEST(Placement, PerNodeThatDoesNotFitSaysHowManyDo) {
  const auto placement = place({{"learner", Spread::per_node, 5, 1, {}, {}}}, 3, 4);
  ASSERT_EQ(placement.misfits.size(), 1U);
  EXPECT_EQ(placement.misfits[0].fit, 4U);
}

TEST(Placement, ExceptLeavesOutTheNodeOfTheOther) {
  const auto placement =
      place({{"worker", Spread::per_node, 1, 0, 1, {}}, {"head", Spread::count, 1, 0, {}, {}}}, 3, 4);
  EXPECT_EQ(nodes_of(placement.by_demand[1]), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(nodes_of(placement.by_demand[0]), (std::vector<std::uint32_t>{1, 2}));
}

TEST(Placement, ASpawnedRoleStandsWhereItsSpawnerIs) {
  const auto placement =
      place({{"head", Spread::count, 1, 0, {}, {}}, {"actor", Spread::count, 3, 1, {}, {0}}}, 2, 4);
  EXPECT_EQ(nodes_of(placement.by_demand[1]), (std::vector<std::uint32_t>{0, 0, 0}));
  const auto too_many =
      place({{"head", Spread::count, 1, 0, {}, {}}, {"actor", Spread::count, 5, 1, {}, {0}}}, 2, 4);
  ASSERT_EQ(too_many.misfits.size(), 1U);
  EXPECT_EQ(too_many.misfits[0].fit, 4U);
}

}  // namespace
}  // namespace nlaunch::plan
