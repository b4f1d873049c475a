#include "watch/slow_nodes.h"

#include <gtest/gtest.h>

namespace nlaunch::watch {
namespace {

TEST(SlowestNode, IsTheOneWhoseProcessesTakeLongest) {
  const auto slowest = slowest_node({{"learner", "n0", 1.0, 50},
                                     {"learner", "n0", 1.02, 50},
                                     {"learner", "n1", 1.3, 50},
                                     {"learner", "n1", 1.2, 50},
                                     {"learner", "n2", 1.01, 50},
                                     {"learner", "n3", 0.99, 50}});
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->host, "n1");
  EXPECT_DOUBLE_EQ(slowest->seconds, 1.25);
  EXPECT_DOUBLE_EQ(slowest->others, 1.01);
}

TEST(SlowestNode, IsNoneAmongNodesThatAreAlike) {
  EXPECT_FALSE(
      slowest_node({{"learner", "n0", 1.0, 50}, {"learner", "n1", 1.04, 50}, {"learner", "n2", 1.0, 50}}));
  EXPECT_TRUE(
      slowest_node({{"learner", "n0", 1.0, 50}, {"learner", "n1", 1.05, 50}, {"learner", "n2", 1.0, 50}}));
}

TEST(SlowestNode, IsSlowerThanOthersOfItsRole) {
  EXPECT_FALSE(slowest_node({{"actor", "n0", 1.0, 50}, {"actor", "n1", 1.0, 50}, {"critic", "n2", 9.0, 50}}))
      << "another role does other things";
  const auto slowest = slowest_node({{"actor", "n0", 1.0, 50},
                                     {"actor", "n1", 1.1, 50},
                                     {"actor", "n2", 1.0, 50},
                                     {"critic", "n3", 2.0, 50},
                                     {"critic", "n4", 2.0, 50},
                                     {"critic", "n5", 3.0, 50}});
  EXPECT_EQ(slowest->host, "n5");
}

TEST(SlowestNode, TakesThreeNodesAndSomeSteps) {
  EXPECT_FALSE(slowest_node({{"learner", "n0", 1.0, 50}, {"learner", "n1", 9.0, 50}}))
      << "either could be as it should be";
  EXPECT_FALSE(
      slowest_node({{"learner", "n0", 1.0, 50}, {"learner", "n1", 9.0, 9}, {"learner", "n2", 1.0, 50}}));
  EXPECT_TRUE(
      slowest_node({{"learner", "n0", 1.0, 50}, {"learner", "n1", 9.0, 10}, {"learner", "n2", 1.0, 50}}));
  EXPECT_FALSE(
      slowest_node({{"learner", "n0", 0, 50}, {"learner", "n1", 9.0, 50}, {"learner", "n2", 0, 50}}));
  EXPECT_FALSE(slowest_node({}));
}

TEST(SlowInMost, TakesThreeOfTheLastFourAttempts) {
  const std::optional<SlowestNode> a = SlowestNode{"n1", 1.5, 1.0};
  const std::optional<SlowestNode> b = SlowestNode{"n2", 1.5, 1.0};
  EXPECT_FALSE(slow_in_most({}));
  EXPECT_FALSE(slow_in_most({a, a}));
  EXPECT_EQ(
      slow_in_most({a, a, SlowestNode{"n1", 2.345, 1.5}})->reason,
      "its steps were the slowest in 3 of the last 3 attempts: 2.35 s against 1.50 s on the other nodes in "
      "the newest");
  EXPECT_EQ(slow_in_most({a, b, a, a})->host, "n1");
  EXPECT_FALSE(slow_in_most({a, a, b, b}));
  EXPECT_FALSE(slow_in_most({a, a, a, b, b})) << "the first is too long ago";
  EXPECT_EQ(slow_in_most({b, a, a, std::nullopt, a})->host, "n1");
}

}  // namespace
}  // namespace nlaunch::watch
