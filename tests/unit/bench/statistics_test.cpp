#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace nlaunch::bench {
namespace {

/// Times as they are seen: a floor, and a tail above it.
std::vector<double> draw(std::size_t count, double scale, std::mt19937_64& random) {
  std::lognormal_distribution<double> times(0, 0.05);
  std::vector<double> out(count);
  for (auto& value : out) value = scale * times(random);
  return out;
}

TEST(Median, IsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(MedianInterval, IsTheSameForTheSameSeed) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7};
  const auto a = median_interval(values, 7);
  const auto b = median_interval(values, 7);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LE(a.low, 4);
  EXPECT_GE(a.high, 4);
}

TEST(MedianInterval, CoversTheMedianInAbout95OfAHundredTrials) {
  constexpr int kTrials = 400;
  for (const std::size_t repeats : {5U, 10U, 20U}) {
    std::mt19937_64 random(1);
    int covered = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto interval = median_interval(draw(repeats, 1, random), static_cast<std::uint64_t>(trial));
      if (interval.low <= 1 && 1 <= interval.high) ++covered;
    }
    EXPECT_GE(covered, kTrials * 91 / 100) << repeats;
    EXPECT_LE(covered, kTrials * 99 / 100) << repeats;
  }
}

TEST(Compare, CallsEqualArmsDifferentInAtMostSevenOfAHundredTrials) {
  constexpr int kTrials = 400;
  for (const std::size_t repeats : {5U, 10U}) {
    std::mt19937_64 random(2);
    int different = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto a = draw(repeats, 1, random);
      const auto b = draw(repeats, 1, random);
      const auto verdict = compare(a, b, static_cast<std::uint64_t>(trial));
      if (verdict.word != Conclusion::Word::no_difference) ++different;
    }
    EXPECT_LE(different, kTrials * 7 / 100) << repeats;
  }
}

TEST(Compare, SeesADifferenceOfTwiceWhatItSaysItCouldHaveSeen) {
  constexpr int kTrials = 200;
  std::mt19937_64 random(3);
  int seen = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto visible = compare(draw(10, 1, random), draw(10, 1, random), 1).visible;
    const auto verdict = compare(draw(10, 1 + 2 * visible, random), draw(10, 1, random), 1);
    if (verdict.word == Conclusion::Word::slower) ++seen;
  }
  EXPECT_GE(seen, kTrials * 80 / 100);
}

TEST(Compare, SaysFasterAndSlower) {
  const std::vector<double> fast{1.00, 1.01, 0.99, 1.02, 0.98};
  const std::vector<double> slow{2.00, 2.02, 1.98, 2.04, 1.96};
  EXPECT_EQ(verdict_text(compare(fast, slow, 1)), "50.0 % faster [48.5, 51.5]");
  EXPECT_EQ(verdict_text(compare(slow, fast, 1)), "100.0 % slower [94.1, 106.1]");
  EXPECT_EQ(verdict_text(compare(fast, fast, 1)),
            "no difference shown [-2.9 %, +3.0 %], smallest detectable difference: 3.0 %");
}

TEST(Compare, DoesNotJudgeFewRepeats) {
  const auto verdict = compare({1, 1, 1, 1}, {2, 2, 2, 2, 2}, 1);
  EXPECT_EQ(verdict.ratio, 0.5);
  EXPECT_EQ(verdict_text(verdict), "not judged: too few successful repeats (at least 5 of each)");
  EXPECT_EQ(compare({}, {1}, 1).word, Conclusion::Word::unknown);
  EXPECT_EQ(compare({1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, 1).word, Conclusion::Word::unknown);
}

TEST(ShareInterval, IsWilsons) {
  // Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I: 15 of 148, 0 of 20.
  EXPECT_NEAR(share_interval(15, 148).low, 0.0624, 0.0001);
  EXPECT_NEAR(share_interval(15, 148).high, 0.1605, 0.0001);
  EXPECT_EQ(share_interval(0, 20).low, 0);
  EXPECT_NEAR(share_interval(0, 20).high, 0.1611, 0.0001);
  EXPECT_EQ(share_interval(0, 0).high, 1);
}

}  // namespace
}  // namespace nlaunch::bench
