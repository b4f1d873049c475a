#include "plan/trackers.h"

#include <gtest/gtest.h>

namespace nlaunch::plan {
namespace {

TEST(Trackers, ANameStandsForItsPatternAndAnyOtherTextForItself) {
  EXPECT_EQ(progress_pattern("trl"), progress_pattern("tqdm"));
  EXPECT_NE(progress_pattern("megatron"), "megatron");
  for (const auto* regex : {"(?:trl)", "TRL", "step (\\d+)", ""}) EXPECT_EQ(progress_pattern(regex), regex);
}

TEST(Trackers, OneThatWasMistypedIsFound) {
  EXPECT_EQ(tracker_like("megatrn"), "megatron");
  EXPECT_EQ(tracker_like("prime_rl"), "prime-rl");
  EXPECT_EQ(tracker_like("step"), "");
  EXPECT_EQ(tracker_like("step (\\d+)"), "");
}

}  // namespace
}  // namespace nlaunch::plan
