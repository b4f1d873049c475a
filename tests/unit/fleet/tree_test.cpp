#include "fleet/tree.h"

#include <gtest/gtest.h>

#include <map>

namespace nlaunch::fleet {
namespace {

using Nodes = std::vector<std::uint32_t>;

TEST(Tree, FewNodesNeedNone) {
  EXPECT_EQ(fan_out_for(1), 0U);
  EXPECT_EQ(fan_out_for(256), 0U);
  EXPECT_EQ(relays_in(256, 0), 0U);
  EXPECT_EQ(relays_of(255, 0), Nodes{});
}

TEST(Tree, ManyNodesHaveOneLevelOfRelays) {
  for (const std::uint32_t nodes : {257U, 1024U, 4096U, 16'384U, 100'000U}) {
    const auto fan_out = fan_out_for(nodes);
    EXPECT_LE(relays_in(nodes, fan_out), fan_out) << nodes;
    EXPECT_EQ(relays_of(nodes - 1, fan_out).size(), 1U) << nodes;
  }
}

TEST(Tree, EightNodesWithAFanOutOfTwo) {
  EXPECT_EQ(relays_in(8, 2), 3U);
  const std::map<std::uint32_t, Nodes> above{{0, {}},  {1, {}},  {2, {0}},    {3, {0}},
                                             {4, {1}}, {5, {1}}, {6, {2, 0}}, {7, {2, 0}}};
  for (const auto& [node, relays] : above) EXPECT_EQ(relays_of(node, 2), relays) << node;
}

TEST(Tree, EveryRelayIsAboveItsNodesAndHasNoMoreThanTheFanOut) {
  for (std::uint32_t fan_out = 1; fan_out < 6; ++fan_out) {
    for (std::uint32_t nodes = 1; nodes < 40; ++nodes) {
      std::map<std::uint32_t, std::uint32_t> below;
      std::uint32_t direct = 0;
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const auto relays = relays_of(node, fan_out);
        if (relays.empty())
          ++direct;
        else
          ++below[relays.front()];
        for (const auto relay : relays) EXPECT_LT(relay, node);
      }
      EXPECT_LE(direct, fan_out);
      EXPECT_EQ(below.size(), relays_in(nodes, fan_out));
      for (const auto& [relay, count] : below) {
        EXPECT_LT(relay, relays_in(nodes, fan_out));
        EXPECT_LE(count, fan_out);
      }
    }
  }
}

}  // namespace
}  // namespace nlaunch::fleet
