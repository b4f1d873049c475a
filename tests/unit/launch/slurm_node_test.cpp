#include "launch/job/slurm_node.h"

#include <gtest/gtest.h>

#include "launch/machine.h"

namespace nlaunch::launch {
namespace {

TEST(SlurmNodeName, IsWhatSlurmdSays) {
  EXPECT_EQ(slurm_node_name({"A=b", "SLURMD_NODENAME=nid001"}), "nid001");
  const auto host = this_host().host;
  EXPECT_EQ(slurm_node_name({}), host.substr(0, host.find('.')));
}

TEST(IsDrained, ReadsTheStateAlone) {
  EXPECT_TRUE(is_drained("NodeName=n1 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 Reason=x"));
  EXPECT_TRUE(is_drained("NodeName=n1 State=MIXED+DRAIN+NOT_RESPONDING\n"));
  EXPECT_FALSE(is_drained("NodeName=n1 State=IDLE Reason=was State=IDLE+DRAIN"));
  EXPECT_FALSE(is_drained("NodeName=n1 State=DOWN* Reason=DRAIN"));
  EXPECT_FALSE(is_drained("Node n1 not found\n"));
}

}  // namespace
}  // namespace nlaunch::launch
