#include "bench/schedule.h"

#include <gtest/gtest.h>

#include <set>

namespace nlaunch::bench {
namespace {

TEST(MakeSchedule, HasEveryArmOnceInEachRepeat) {
  const auto turns = make_schedule(3, 4, 9);
  ASSERT_EQ(turns.size(), 12);
  for (std::uint32_t repeat = 0; repeat < 4; ++repeat) {
    std::set<std::size_t> arms;
    for (std::size_t i = repeat * 3; i < repeat * 3 + 3; ++i) {
      EXPECT_EQ(turns[i].repeat, repeat);
      arms.insert(turns[i].arm);
    }
    EXPECT_EQ(arms.size(), 3);
  }
}

TEST(MakeSchedule, IsDrawnAnewForEachRepeatAndTheSameForASeed) {
  const auto order = [](std::uint64_t seed) {
    std::vector<std::size_t> arms;
    for (const auto& turn : make_schedule(2, 64, seed)) arms.push_back(turn.arm);
    return arms;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  std::size_t first = 0;
  const auto arms = order(1);
  for (std::size_t i = 0; i < arms.size(); i += 2) first += arms[i] == 0 ? 1 : 0;
  EXPECT_GT(first, 16);
  EXPECT_LT(first, 48);
}

}  // namespace
}  // namespace nlaunch::bench
