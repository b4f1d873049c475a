#include "base/collective.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

TEST(Collective, NamesAreReadAsTheyAreWritten) {
  for (const auto op : kValues<Collective>) EXPECT_EQ(value_of<Collective>(name_of(op)), op);
  for (const auto type : kValues<DataType>) EXPECT_EQ(value_of<DataType>(name_of(type)), type);
  EXPECT_EQ(value_of<Collective>("allreduce"), std::nullopt);
  EXPECT_EQ(value_of<DataType>("fp8"), std::nullopt);
}

TEST(Collective, BusBandwidthIsThatOfNcclTests) {
  constexpr std::uint64_t kBytes = 1000;
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_reduce, kBytes, 1, 4), 1500);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_gather, kBytes, 1, 4), 750);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::reduce_scatter, kBytes, 2, 4), 375);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::broadcast, kBytes, 1, 4), 1000);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::send_recv, kBytes, 1, 4), 1000);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::all_reduce, kBytes, 0, 4), 0);
}

}  // namespace
}  // namespace nlaunch
