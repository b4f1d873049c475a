#include "probe/node/kernel_log.h"

#include <gtest/gtest.h>

namespace nlaunch::probe {
namespace {

TEST(ParseKmsg, TakesTheKernelsOwnLines) {
  const auto line = parse_kmsg(
      "4,1234,5140900123,-;NVRM: Xid (PCI:0009:01:00): 79, GPU\n SUBSYSTEM=pci\n DEVICE=+pci:0009\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text, "NVRM: Xid (PCI:0009:01:00): 79, GPU");
  EXPECT_DOUBLE_EQ(line->seconds, 5140.900123);
  EXPECT_TRUE(parse_kmsg("6,1,0,c,caller=T1;text"));
}

TEST(ParseKmsg, LeavesOutWhatProgramsWrote) {
  EXPECT_FALSE(parse_kmsg("12,1234,5140900123,-;NVRM: Xid (PCI:0009:01:00): 79, a joke\n"));
  for (const auto* record : {"", ";", "4,1,2;text", "x,1,2,-;text", "4,1,x,-;text", "4,1,2,- text"}) {
    EXPECT_FALSE(parse_kmsg(record)) << record;
  }
}

TEST(ConcernsGpus, PicksTheLines) {
  EXPECT_TRUE(concerns_gpus("nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal"));
  EXPECT_TRUE(concerns_gpus("NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus."));
  EXPECT_TRUE(concerns_gpus("INFO: task python3:1 blocked for more than 120 seconds."));
  EXPECT_FALSE(concerns_gpus("nvidia: loading out-of-tree module taints kernel."));
}

}  // namespace
}  // namespace nlaunch::probe
