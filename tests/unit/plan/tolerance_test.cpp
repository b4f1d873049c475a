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

TEST(DispensableNodes, HoldNothingButWhatIsTolerated) {
  Plan plan;
  plan.node.count = 4;
  plan.roles.resize(2);
  plan.roles[1].tolerate = 1;
  for (const std::uint32_t node : {0U, 1U, 2U, 3U}) {
    auto& process = plan.processes.emplace_back();
    process.role = 1;
    process.node = node;
  }
  plan.processes.emplace_back().node = 2;
  EXPECT_EQ(dispensable_nodes(plan), (std::vector<bool>{false, true, false, true}));
}

TEST(OutlivesLeader, WhereAgentsHaveTimeAndAFolderInCommon) {
  Plan plan;
  plan.scheduler = "slurm";
  EXPECT_FALSE(outlives_leader(plan));
  plan.leader_grace = std::chrono::minutes(1);
  for (const auto& [scheduler, outlives] :
       {std::pair{"slurm", true}, {"flux", true}, {"beaker", false}, {"local", false}}) {
    plan.scheduler = scheduler;
    EXPECT_EQ(outlives_leader(plan), outlives) << scheduler;
  }
}

}  // namespace
}  // namespace nlaunch::plan
