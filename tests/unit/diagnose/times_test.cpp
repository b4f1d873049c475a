#include "diagnose/times.h"

#include <gtest/gtest.h>

#include <string>

namespace nlaunch::diagnose {
namespace {

TEST(TimeOf, ReadsDatesAsLoggersWriteThem) {
  EXPECT_DOUBLE_EQ(time_of("2024-03-12 02:29:19,487 INFO").value_or(0), 1710210559.487);
  EXPECT_DOUBLE_EQ(time_of("[rank0] 2025-01-21T04:41:44.283+00:00 x").value_or(0), 1737434504.283);
  EXPECT_DOUBLE_EQ(time_of("2024-10-09_21:16:02").value_or(0), 1728508562);
  EXPECT_DOUBLE_EQ(time_of("2000/02/29 23:59:59").value_or(0), 951868799);
}

TEST(TimeOf, ReadsEachDigitOfTheFraction) {
  const auto fraction = [](std::string_view digits) {
    return time_of("2024-10-09 21:16:02." + std::string(digits)).value_or(0) - 1728508562;
  };
  EXPECT_NEAR(fraction("5"), 0.5, 1e-6);
  EXPECT_NEAR(fraction("05"), 0.05, 1e-6);
  EXPECT_NEAR(fraction("123456"), 0.123456, 1e-6);
  EXPECT_NEAR(fraction("999999"), 0.999999, 1e-6);
}

TEST(TimeOf, TakesTheFirstOfTwo) {
  EXPECT_DOUBLE_EQ(time_of("2024-10-09 21:16:02 2024-10-09 21:16:05").value_or(0), 1728508562);
}

TEST(TimeOf, IsNothingWithoutADateThatThereIs) {
  for (const auto* line : {"", "21:16:02", "2024-10-09", "1999-10-09 21:16:02", "2023-02-29 00:00:00",
                           "2024-13-01 00:00:00", "2024-00-01 00:00:00", "12024-10-09 21:16:02"})
    EXPECT_EQ(time_of(line), std::nullopt) << line;
}

}  // namespace
}  // namespace nlaunch::diagnose
