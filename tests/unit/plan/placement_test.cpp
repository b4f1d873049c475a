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

/// "0:0,1 2:0": the node of each process with its GPUs.
std::string told(const std::vector<Placed>& placed) {
  std::string out;
  for (const auto& process : placed) {
    out += (out.empty() ? "" : " ") + std::to_string(process.node);
    for (std::size_t i = 0; i < process.gpus.size(); ++i)
      out += (i == 0 ? ":" : ",") + std::to_string(process.gpus[i]);
  }
  return out;
}

/// Each on the GPUs of the first, beside those that do the same.
TEST(Placement, ADemandThatSharesIsOnTheGpusOfAnother) {
  std::vector<Demand> demands{{"engine", Spread::per_node, 2, 2, {}, {}, {2}},
                              {"judge", Spread::count, 1, 1, {}, {}, {2}},
                              {"learner", Spread::per_node, 4, 1, {}, {}},
                              {"reward", Spread::count, 2, 1, {}, {}}};
  const auto placement = place(demands, 2, 5);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(told(placement.by_demand[2]), "0:0 0:1 0:2 0:3 1:0 1:1 1:2 1:3");
  EXPECT_EQ(told(placement.by_demand[0]), "0:0,1 0:2,3 1:0,1 1:2,3");
  EXPECT_EQ(told(placement.by_demand[1]), "0:0");
  EXPECT_EQ(told(placement.by_demand[3]), "0:4 1:4");
  EXPECT_TRUE(placement.idle.empty());
  EXPECT_EQ(gpus_on_one_node(
                {{"learner", Spread::count, 2, 2, {}, {}}, {"engine", Spread::count, 4, 1, {}, {}, {0}}}),
            4U);
}

TEST(Placement, WhatSharesFitsWhereTheOtherIs) {
  const auto misfit = [](const std::vector<Demand>& demands) {
    const auto misfits = place(demands, 2, 4).misfits;
    return misfits.size() == 1 ? std::optional(misfits[0]) : std::nullopt;
  };
  // No two of the same role on one GPU, and nothing of the GPUs that nobody has.
  const auto many =
      misfit({{"learner", Spread::count, 2, 1, {}, {}}, {"engine", Spread::count, 3, 1, {}, {}, {0}}});
  ASSERT_TRUE(many);
  EXPECT_EQ(many->fit, 2U);
  EXPECT_EQ(many->on_nodes, std::nullopt);
  const auto wide =
      misfit({{"learner", Spread::per_node, 1, 1, {}, {}}, {"engine", Spread::count, 1, 2, {}, {}, {0}}});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->fit, 0U);
  const auto nodes =
      misfit({{"learner", Spread::per_node, 1, 1, {}, {}}, {"engine", Spread::count, 3, 1, {}, {}, {0}}});
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->on_nodes, 3U);
}

TEST(Placement, ThoseThatShareWithOneAreSpreadOverItsGpus) {
  const auto placement = place({{"trainer", Spread::count, 1, 4, {}, {}},
                                {"policy", Spread::count, 1, 1, {}, {}, {0}},
                                {"judge", Spread::count, 2, 1, {}, {}, {0}},
                                {"reward", Spread::count, 2, 1, {}, {}, {0}}},
                               1, 4);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(told(placement.by_demand[1]), "0:0");
  EXPECT_EQ(told(placement.by_demand[2]), "0:1 0:2");
  EXPECT_EQ(told(placement.by_demand[3]), "0:3 0:0");
}

TEST(Placement, OfWhatSharesWithARoleThatDoesNotFitNothingIsSaid) {
  const auto misfits =
      place({{"learner", Spread::count, 1, 8, {}, {}}, {"engine", Spread::count, 1, 1, {}, {}, {0}}}, 1, 4)
          .misfits;
  ASSERT_EQ(misfits.size(), 1U);
  EXPECT_EQ(misfits[0].demand, 0U);
}

/// Of two roles, where one process spans the GPUs of both.
TEST(Placement, AProcessMayShareWithSeveral) {
  const auto placement = place({{"actor", Spread::count, 2, 1, {}, {}},
                                {"critic", Spread::count, 2, 1, {}, {}},
                                {"engine", Spread::count, 1, 4, {}, {}, {0, 1}}},
                               1, 4);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(told(placement.by_demand[2]), "0:0,1,2,3");
}

TEST(Placement, WhatASharerStartsStandsOnItsNode) {
  const auto placement = place({{"actor", Spread::count, 1, 1, {}, {1}},
                                {"driver", Spread::count, 1, 1, {}, {}, {2}},
                                {"learner", Spread::count, 1, 3, {}, {}}},
                               2, 4);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(told(placement.by_demand[1]), "0:0");
  EXPECT_EQ(told(placement.by_demand[0]), "0:3");
}

TEST(Placement, EachProcessHasTheLowestFreeGpus) {
  const auto placement =
      place({{"a", Spread::count, 2, 1, {}, {}}, {"b", Spread::count, 2, 2, {}, {}}}, 2, 4);
  EXPECT_EQ(told(placement.by_demand[0]), "0:0 0:1");
  EXPECT_EQ(told(placement.by_demand[1]), "0:2,3 1:0,1");
  ASSERT_EQ(placement.idle.size(), 2U);
  EXPECT_EQ(placement.idle[0].node, 1U);
  EXPECT_EQ(placement.idle[0].gpu, 2U);
  EXPECT_EQ(placement.idle[1].gpu, 3U);
}

TEST(Placement, ALaterRoleFillsTheGapsOfAnEarlierOne) {
  const auto placement =
      place({{"a", Spread::count, 2, 3, {}, {}}, {"b", Spread::count, 2, 1, {}, {}}}, 2, 4);
  EXPECT_EQ(told(placement.by_demand[0]), "0:0,1,2 1:0,1,2");
  EXPECT_EQ(told(placement.by_demand[1]), "0:3 1:3");
  EXPECT_TRUE(placement.idle.empty());
}

TEST(Placement, PerNodePutsSoManyOnEach) {
  const auto placement = place({{"a", Spread::per_node, 2, 1, {}, {}}}, 2, 3);
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(told(placement.by_demand[0]), "0:0 0:1 1:0 1:1");
  EXPECT_EQ(placement.idle.size(), 2U);
}

TEST(Placement, WhomOthersAvoidComesFirstThenWhoSpawnsThenTheRest) {
  // In the file's order, each would take the GPUs that the next one needs.
  const auto avoided = place({{"rest", Spread::per_node, 1, 1, {}, {}},
                              {"worker", Spread::per_node, 1, 0, 2, {}},
                              {"head", Spread::count, 1, 2, {}, {}}},
                             2, 2);
  EXPECT_EQ(told(avoided.by_demand[2]), "0:0,1");
  EXPECT_EQ(told(avoided.by_demand[1]), "1");
  ASSERT_EQ(avoided.misfits.size(), 1U);
  EXPECT_EQ(avoided.misfits[0].demand, 0U);
  EXPECT_EQ(avoided.misfits[0].fit, 0U);

  const auto spawning = place({{"rest", Spread::per_node, 1, 1, {}, {}},
                               {"actor", Spread::count, 1, 1, {}, {2}},
                               {"driver", Spread::count, 1, 1, {}, {}}},
                              2, 2);
  EXPECT_EQ(told(spawning.by_demand[2]), "0:0");
  EXPECT_EQ(told(spawning.by_demand[0]), "0:1 1:0") << "it stands before the other `count` roles";
  EXPECT_EQ(told(spawning.by_demand[1]), "");
  ASSERT_EQ(spawning.misfits.size(), 1U);
  EXPECT_EQ(spawning.misfits[0].demand, 1U);

  // Who is avoided and spawns, too, still comes first.
  const auto both = place({{"driver", Spread::per_node, 1, 1, {}, {}},
                           {"actor", Spread::count, 1, 0, {}, {0, 3}},
                           {"worker", Spread::per_node, 1, 0, 3, {}},
                           {"head", Spread::count, 1, 2, {}, {}}},
                          2, 2);
  EXPECT_EQ(told(both.by_demand[3]), "0:0,1");
  EXPECT_EQ(told(both.by_demand[2]), "1");
}

TEST(Placement, ASpawnedRoleStandsWithAnyOfItsSpawners) {
  const auto placement = place({{"first", Spread::count, 1, 2, {}, {}},
                                {"second", Spread::count, 1, 2, {}, {}},
                                {"actor", Spread::per_node, 1, 0, {}, {0, 1}}},
                               3, 2);
  EXPECT_EQ(told(placement.by_demand[2]), "0 1");
  const auto of_one = place({{"other", Spread::count, 1, 2, {}, {}},
                             {"spawner", Spread::count, 1, 2, {}, {}},
                             {"actor", Spread::per_node, 1, 0, {}, {1}}},
                            3, 2);
  EXPECT_EQ(told(of_one.by_demand[1]), "0:0,1") << "it comes before the other";
  EXPECT_EQ(told(of_one.by_demand[2]), "0");
  const auto without_the_first = place({{"first", Spread::count, 1, 2, {}, {}},
                                        {"second", Spread::count, 1, 2, {}, {}},
                                        {"actor", Spread::per_node, 1, 0, 0, {0, 1}}},
                                       3, 2);
  EXPECT_EQ(told(without_the_first.by_demand[2]), "1") << "not where the first is, though it spawns";
}

TEST(Placement, TheFewestNodesAreFoundExactly) {
  const auto nodes_for = [](std::uint32_t processes, std::uint32_t nodes) {
    const auto placement = place({{"a", Spread::count, processes, 2, {}, {}}}, nodes, 4);
    return placement.misfits.empty() ? std::optional<std::uint32_t>() : placement.misfits[0].on_nodes;
  };
  EXPECT_EQ(nodes_for(3, 1), 2U);
  EXPECT_EQ(nodes_for(5, 1), 3U);
  EXPECT_EQ(nodes_for(7, 1), 4U);
  EXPECT_EQ(nodes_for(9, 1), 5U);
  EXPECT_EQ(nodes_for(13, 3), 7U);
  EXPECT_EQ(nodes_for(22, 1), 11U);
  EXPECT_EQ(nodes_for(4, 2), std::nullopt) << "it fits";
}

TEST(Placement, ANumberOfNodesIsToldUpToALimit) {
  const auto nodes_for = [](std::uint32_t processes) {
    return place({{"a", Spread::count, processes, 1, {}, {}}}, 1, 1).misfits.at(0).on_nodes;
  };
  EXPECT_EQ(nodes_for(65'536), 65'536U);
  EXPECT_EQ(nodes_for(65'537), std::nullopt);
}

TEST(Placement, MoreNodesDoNotHelpWhatIsOnEachOfThemOrNeedsMoreThanOneHas) {
  const auto on_nodes = [](const Demand& demand, std::uint32_t nodes, std::uint32_t gpus) {
    const auto placement = place({demand}, nodes, gpus);
    EXPECT_EQ(placement.misfits.size(), 1U);
    return placement.misfits.empty() ? std::optional<std::uint32_t>(0) : placement.misfits[0].on_nodes;
  };
  EXPECT_EQ(on_nodes({"a", Spread::per_node, 2, 2, {}, {}}, 2, 2), std::nullopt);
  EXPECT_EQ(on_nodes({"a", Spread::count, 1, 3, {}, {}}, 2, 2), std::nullopt);
  EXPECT_EQ(on_nodes({"a", Spread::count, 3, 2, {}, {}}, 2, 2), 3U);
  EXPECT_EQ(on_nodes({"a", Spread::count, 1, 1, {}, {}}, 0, 2), std::nullopt);
}

TEST(Placement, OneNodeNeedsTheGpusOfAll) {
  EXPECT_EQ(gpus_on_one_node({}), 0U);
  EXPECT_EQ(gpus_on_one_node({{"a", Spread::count, 3, 2, {}, {}}, {"b", Spread::per_node, 4, 1, {}, {}}}),
            10U);
}

/// "0:0,1 1:0,1": the node and the GPUs of each process.
std::string places(const std::vector<Placed>& placed) {
  std::string out;
  for (const auto& one : placed) {
    out += (out.empty() ? "" : " ") + std::to_string(one.node) + ":";
    for (std::size_t i = 0; i < one.gpus.size(); ++i)
      out += (i == 0 ? "" : ",") + std::to_string(one.gpus[i]);
  }
  return out;
}

Demand replicas_of(std::uint32_t number, std::uint32_t nodes, std::uint32_t per_node, std::uint32_t gpus) {
  Demand demand{"engine", Spread::count, number, gpus, {}, {}};
  demand.unit_nodes = nodes;
  demand.unit_per_node = per_node;
  return demand;
}

TEST(Placement, AReplicaHasItsNodesAndTheNextOneWhatIsLeftThere) {
  EXPECT_EQ(places(place({replicas_of(2, 2, 1, 2)}, 2, 4).by_demand[0]), "0:0,1 1:0,1 0:2,3 1:2,3");
  EXPECT_EQ(places(place({replicas_of(1, 2, 2, 1)}, 2, 4).by_demand[0]), "0:0 0:1 1:0 1:1");
  EXPECT_EQ(places(place({replicas_of(2, 2, 1, 4)}, 4, 4).by_demand[0]),
            "0:0,1,2,3 1:0,1,2,3 2:0,1,2,3 3:0,1,2,3");
}

TEST(Placement, AReplicaThatDoesNotFitAsAWholeIsNotPlaced) {
  const auto placement = place({replicas_of(2, 2, 1, 4)}, 3, 4);
  EXPECT_EQ(places(placement.by_demand[0]), "0:0,1,2,3 1:0,1,2,3");
  ASSERT_EQ(placement.misfits.size(), 1U);
  EXPECT_EQ(placement.misfits[0].fit, 1U);
  EXPECT_EQ(placement.misfits[0].on_nodes, 4U);
}

TEST(Placement, ARoleStandsInItsPoolsAlone) {
  Demand learner{"learner", Spread::per_node, 1, 1, {}, {}};
  learner.pools = {1};
  Demand engine{"engine", Spread::count, 3, 2, {}, {}};
  engine.pools = {0, 1};
  const Demand tool{"tool", Spread::per_node, 1, 0, {}, {}};
  const auto placement = place({learner, engine, tool}, {{1, 2}, {2, 4}, {1, 0}});
  EXPECT_TRUE(placement.misfits.empty());
  EXPECT_EQ(places(placement.by_demand[0]), "1:0 2:0");
  EXPECT_EQ(places(placement.by_demand[1]), "0:0,1 1:1,2 2:1,2");
  EXPECT_EQ(places(placement.by_demand[2]), "0: 1: 2: 3:") << "without a pool it stands anywhere";
}

TEST(Placement, AReplicaIsOfOnePool) {
  EXPECT_EQ(places(place({replicas_of(1, 2, 1, 2)}, {{1, 4}, {2, 4}}).by_demand[0]), "1:0,1 2:0,1");
  const auto none = place({replicas_of(1, 2, 1, 2)}, {{1, 4}, {1, 4}});
  ASSERT_EQ(none.misfits.size(), 1U);
  EXPECT_EQ(none.misfits[0].on_nodes, 2U) << "of the last pool";
}

}  // namespace
}  // namespace nlaunch::plan
