#include "shell/waits.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

/// Asks on a line until the node ends: how often.
std::size_t asked_until_end(Waits& waits, std::uint32_t line) {
  constexpr std::size_t kMany = 1000;
  std::size_t count = 0;
  do {
    waits.asked(line);
    ++count;
  } while (!waits.ends_node() && count < kMany);
  return count;
}

TEST(Waits, ManyInARowAreTooMany) {
  Waits waits;
  for (int i = 0; i < 500; ++i) waits.asked(3);
  EXPECT_FALSE(waits.too_many());
  waits.asked(3);
  EXPECT_TRUE(waits.too_many());
  waits.acted();
  EXPECT_FALSE(waits.too_many());
  waits.asked(3);
  EXPECT_FALSE(waits.too_many());
}

TEST(Waits, TheLastLineIsThatOfThoseInARow) {
  Waits waits;
  waits.asked(9);
  waits.asked(4);
  EXPECT_EQ(waits.last_line(), 9U);
  waits.acted();
  waits.asked(2);
  EXPECT_EQ(waits.last_line(), 2U);
  waits.asked(5);
  EXPECT_EQ(waits.last_line(), 5U);
}

TEST(Waits, TheNextNodesGetLessTimeForTheSameWait) {
  Waits waits;
  EXPECT_EQ(asked_until_end(waits, 3), 501U);
  EXPECT_EQ(asked_until_end(waits, 3), 51U);
  EXPECT_EQ(asked_until_end(waits, 7), 501U);  // another wait
  EXPECT_EQ(asked_until_end(waits, 7), 51U);
}

TEST(Waits, AnUnknownLineIsNotYetAWaitWithoutSuccess) {
  Waits waits;
  EXPECT_EQ(asked_until_end(waits, 0), 501U);
  EXPECT_EQ(asked_until_end(waits, 0), 51U);
}

TEST(Waits, ANodeThatOnlyWaitedIsKilledOnce) {
  Waits waits;
  EXPECT_FALSE(waits.node_killed(3));
  EXPECT_FALSE(waits.node_waited());
  waits.asked(3);
  EXPECT_FALSE(waits.ends_node());
  EXPECT_FALSE(waits.node_killed(3));  // something else has killed it
  EXPECT_EQ(asked_until_end(waits, 3), 500U);
  EXPECT_FALSE(waits.node_waited());
  EXPECT_TRUE(waits.node_killed(8));
  EXPECT_EQ(waits.last_line(), 8U);
  EXPECT_TRUE(waits.node_waited());
  EXPECT_FALSE(waits.node_killed(9));
  EXPECT_EQ(waits.last_line(), 8U);
  EXPECT_TRUE(waits.node_waited());
}

}  // namespace
}  // namespace nlaunch::shell
