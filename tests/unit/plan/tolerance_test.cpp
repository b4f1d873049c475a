#include "plan/tolerance.h"

#include <gtest/gtest.h>

namespace nlaunch::plan {
namespace {

TEST(OutlivesNodes, WhereARoleToleratesLossesOnSeveral) {
  Plan plan;
  plan.roles.resize(2);
  plan.node.count = 2;
  EXPECT_FALSE(outlives_nodes(plan));
  plan.roles[1].tolerate = 0;
  EXPECT_TRUE(outlives_nodes(plan));
  plan.node.count = 1;
  EXPECT_FALSE(outlives_nodes(plan));
}

}  // namespace
}  // namespace nlaunch::plan
