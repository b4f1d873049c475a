#include "base/units.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("10").error(), "'10' has no unit: write 10s or 10m");
  EXPECT_EQ(parse_duration("5 minutes").error(), "'minutes' is not a unit of time: write ms, s, m, h or d");
}

TEST(Units, TimeLimitsAreReadInAllFormsOfSlurm) {
  EXPECT_EQ(parse_time_limit("90"), 90min);
  EXPECT_EQ(parse_time_limit("10:30"), 10min + 30s);
  EXPECT_EQ(parse_time_limit("24:00:00"), 24h);
  EXPECT_EQ(parse_time_limit("1-12"), 36h);
  EXPECT_EQ(parse_time_limit("1-12:30"), 36h + 30min);
  EXPECT_EQ(parse_time_limit("7-00:00:01"), 7 * 24h + 1s);
  for (const auto* none : {"UNLIMITED", "infinite", "0"})
    EXPECT_EQ(parse_time_limit(none), std::chrono::seconds::max()) << none;
  for (const auto* odd : {"", "soon", "1:2:3:4", "-1", "1-", "10m", "1::2"})
    EXPECT_FALSE(parse_time_limit(odd)) << odd;
  EXPECT_EQ(format_time_limit(36h + 5s), "36:00:05");
}

TEST(Units, DurationsThatAreNoneAreRefused) {
  EXPECT_EQ(parse_duration("soon").error(), "'soon' is not a duration: write 30s, 10m or 1h30m");
  EXPECT_EQ(parse_duration("10x").error(), "'x' is not a unit of time: write ms, s, m, h or d");
  EXPECT_EQ(parse_duration("-1s").error(), "'-1s' is not a duration: write 30s, 10m or 1h30m");
  EXPECT_EQ(parse_duration("99999999999d").error(), "'99999999999d' is longer than ten years");
  EXPECT_FALSE(parse_duration("").has_value());
  EXPECT_FALSE(parse_duration("nan s").has_value());
}

TEST(Units, DurationsPrintAsTheyAreWritten) {
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(1500ms), "1s500ms");
  EXPECT_EQ(format_duration(0ms), "0s");
}

TEST(Units, SizesKnowBothKindsOfThousand) {
  EXPECT_EQ(parse_size("1GiB"), 1ULL << 30U);
  EXPECT_EQ(parse_size("1GB"), 1000000000U);
  EXPECT_EQ(parse_size("22118400B"), 22118400U);
  EXPECT_EQ(parse_size("64").error(), "'64' has no unit: write 64MiB or 1GB");
  EXPECT_EQ(parse_size("64mib").error(), "'mib' is not a unit of a size: write 64MiB or 1GB");
  EXPECT_EQ(format_size(1U << 20U), "1MiB");
  EXPECT_EQ(format_size(22118400), "21600KiB");
}

TEST(Units, AFractionIsAboveNothingAndAtMostAll) {
  EXPECT_EQ(parse_fraction("0.45"), 0.45);
  EXPECT_EQ(parse_fraction("1"), 1.0);
  for (const auto* wrong : {"0", "1.01", "-0.5", "45%", "half", ""})
    EXPECT_EQ(parse_fraction(wrong).error(),
              "'" + std::string(wrong) + "' must be above 0 and at most 1: write 0.45");
}

TEST(Units, RatesAreBytesOrBits) {
  EXPECT_DOUBLE_EQ(parse_rate("150GB/s").value(), 150e9);
  EXPECT_DOUBLE_EQ(parse_rate("400Gb/s").value(), 50e9);
  EXPECT_EQ(parse_rate("150").error(), "'150' has no unit: write 150GB/s");
}

TEST(Units, VersionsCompareByNumber) {
  EXPECT_LT(parse_version("2.9").value(), parse_version("2.27.3").value());
  EXPECT_EQ(parse_version("2.27").value(), parse_version("2.27.0").value());
  EXPECT_FALSE(parse_version("2.x").has_value());
  EXPECT_EQ(nccl_version(22809).str(), "2.28.9");
  EXPECT_EQ(nccl_version(2708).str(), "2.7.8");
}

TEST(Units, RangesHoldAllTheirParts) {
  const auto range = VersionRange::parse(">=2.27, <2.30").value();
  EXPECT_TRUE(range.contains(parse_version("2.28.9").value()));
  EXPECT_FALSE(range.contains(parse_version("2.30").value()));
  EXPECT_TRUE(VersionRange::parse("2").value().contains({{2}}));
  EXPECT_FALSE(VersionRange::parse(">1").value().contains({{1}}));
  EXPECT_EQ(VersionRange::parse("new").error(), "'new' is not a range: write \">=2.27\" or \">1\"");
}

}  // namespace
}  // namespace nlaunch
