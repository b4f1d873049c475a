#include "sys/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

namespace nlaunch::sys {
namespace {

TEST(Topology, AllowedCpusAreThoseOfTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const auto all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(all.back(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(allowed_cpus(), (std::vector<unsigned>{all.back()}));
  ::sched_setaffinity(0, sizeof(before), &before);
}

TEST(Topology, ADeviceThatIsNotKnownNarrowsNothing) {
  Topology topology;
  EXPECT_TRUE(topology.cpus_near({}).empty());
  EXPECT_TRUE(topology.cpus_near({"ffff:ff:1f.7", "no bus id"}).empty());
}

}  // namespace
}  // namespace nlaunch::sys
