#include "watch/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <initializer_list>

namespace nlaunch::watch {
namespace {

using namespace std::chrono_literals;

/// A run whose steps take these times, in seconds.
struct Course {
  Steps steps{2};
  Duration now{};
  std::uint64_t step = 0;
  std::vector<std::uint64_t> told{};

  void step_takes(double seconds) {
    now += Duration(static_cast<Duration::rep>(seconds * 1000));
    steps.done(now, ++step, std::nullopt);
    look();
  }
  void waits(double seconds) {
    now += Duration(static_cast<Duration::rep>(seconds * 1000));
    look();
  }
  void look() {
    if (const auto slow = steps.look(now)) told.push_back(slow->step);
  }
};

TEST(Steps, EvenStepsAreNotSlow) {
  Course run;
  for (int i = 0; i < 100; ++i) run.step_takes(30 + i % 3);
  EXPECT_TRUE(run.told.empty());
  EXPECT_EQ(run.steps.count(), 99U);
  EXPECT_EQ(run.steps.last(), 100U);
}

TEST(Steps, TheFirstStepsAreNoMeasureAndNotJudged) {
  Course run;
  for (const double seconds : {0.0, 600.0, 300.0, 60.0}) run.step_takes(seconds);
  for (int i = 0; i < 20; ++i) run.step_takes(10);
  EXPECT_TRUE(run.told.empty());
  EXPECT_DOUBLE_EQ(median({run.steps.seconds().begin(), run.steps.seconds().end()}), 10);
}

TEST(Steps, AnEvaluationNowAndThenIsNotSlow) {
  Course run;
  for (int i = 0; i < 200; ++i) run.step_takes(i % 20 == 19 ? 40 : 10);
  EXPECT_TRUE(run.told.empty());
}

TEST(Steps, ThreeSlowStepsInARowAreToldOnce) {
  Course run;
  for (int i = 0; i < 20; ++i) run.step_takes(10);
  for (int i = 0; i < 6; ++i) run.step_takes(25);
  EXPECT_EQ(run.told, std::vector<std::uint64_t>{23});
}

TEST(Steps, ThatGoBackToNormalCanBecomeSlowAgain) {
  Course run;
  for (int i = 0; i < 20; ++i) run.step_takes(10);
  for (int i = 0; i < 3; ++i) run.step_takes(25);
  for (int i = 0; i < 20; ++i) run.step_takes(10);
  for (int i = 0; i < 3; ++i) run.step_takes(25);
  EXPECT_EQ(run.told, (std::vector<std::uint64_t>{23, 46}));
}

TEST(Steps, AStepThatGoesOnFarTooLongIsToldBeforeItEnds) {
  Course run;
  for (int i = 0; i < 20; ++i) run.step_takes(40);
  run.waits(190);
  EXPECT_TRUE(run.told.empty());
  run.waits(20);
  EXPECT_EQ(run.told, std::vector<std::uint64_t>{21});
}

TEST(Steps, AfterAnEvaluationAStepMayTakeAsLong) {
  Course run;
  for (int i = 0; i < 20; ++i) run.step_takes(10);
  run.step_takes(45);
  run.waits(80);
  EXPECT_TRUE(run.told.empty());
  run.waits(11);
  EXPECT_EQ(run.told, std::vector<std::uint64_t>{22});
}

TEST(Steps, OfEveryTenthReportTheTimeIsByStep) {
  Steps steps(2);
  for (std::uint64_t step = 0; step <= 100; step += 10) {
    steps.done(Duration(static_cast<Duration::rep>(step * 5000)), step, std::nullopt);
  }
  for (const double seconds : steps.seconds()) EXPECT_DOUBLE_EQ(seconds, 5);
  EXPECT_FALSE(steps.look(Duration(500'000 + 240'000)));
  EXPECT_TRUE(steps.look(Duration(500'000 + 260'000)));
}

TEST(Steps, TheReportsOwnSecondsCount) {
  Steps steps(2);
  for (std::uint64_t step = 0; step < 10; ++step)
    steps.done(Duration(1000 * static_cast<int>(step)), step, 0.25);
  for (const double seconds : steps.seconds()) EXPECT_DOUBLE_EQ(seconds, 0.25);
}

TEST(Steps, ACountThatBeginsAgainIsFollowed) {
  Course run;
  for (int epoch = 0; epoch < 3; ++epoch) {
    run.now += 120s;  // an evaluation
    run.step = 1;
    run.steps.again(run.now, 1);
    run.look();
    for (int i = 0; i < 10; ++i) run.step_takes(10);
    EXPECT_EQ(run.steps.last(), 11U);
  }
  EXPECT_TRUE(run.told.empty());
  EXPECT_DOUBLE_EQ(*std::ranges::max_element(run.steps.seconds()), 10);
  run.waits(200);
  EXPECT_EQ(run.told, std::vector<std::uint64_t>{12});
}

TEST(Steps, OfSeveralThatBeginAgainTheFirstIsFollowed) {
  Steps steps(2);
  for (std::uint64_t step = 1; step <= 5; ++step) steps.done(std::chrono::seconds(step), step, std::nullopt);
  steps.again(6s, 1);
  steps.again(6s + 100ms, 1);
  EXPECT_EQ(steps.last(), 1U);
  EXPECT_EQ(steps.count(), 5U);
}

TEST(Steps, ShortOnesAreNobodysTrouble) {
  Course run;
  for (int i = 0; i < 20; ++i) run.step_takes(0.01);
  for (int i = 0; i < 6; ++i) run.step_takes(0.1);
  run.waits(0.9);
  EXPECT_TRUE(run.told.empty());
}

TEST(Median, IsTheOneInTheMiddle) {
  EXPECT_DOUBLE_EQ(median({}), 0);
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(median({9, 1}), 5);
  EXPECT_DOUBLE_EQ(median({9, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({9, 1, 2, 4}), 3);
}

// The first report begins a step; the three after it are warm-up.
TEST(Steps, TheFourthStepIsTheFirstThatCounts) {
  Course run;
  for (const double seconds : {1.0, 2.0, 3.0, 4.0}) run.step_takes(seconds);
  EXPECT_TRUE(run.steps.seconds().empty());
  run.step_takes(5);
  EXPECT_EQ(run.steps.seconds(), std::deque<double>{5});
}

TEST(Steps, AThousandAreKept) {
  Course run;
  for (int i = 0; i < 1004; ++i) run.step_takes(i == 4 ? 2 : 1);
  EXPECT_EQ(run.steps.seconds().size(), 1000U);
  EXPECT_EQ(run.steps.seconds().front(), 2);
  run.step_takes(1);
  EXPECT_EQ(run.steps.seconds().size(), 1000U);
  EXPECT_EQ(run.steps.seconds().front(), 1);
}

/// A course with so many steps of ten seconds that count.
Course with(int steps) {
  Course run;
  for (int i = 0; i < steps + 4; ++i) run.step_takes(10);
  return run;
}

TEST(Steps, FiveAreEnoughToCallThreeMoreSlow) {
  auto few = with(4);
  for (int i = 0; i < 3; ++i) few.step_takes(21);
  EXPECT_TRUE(few.told.empty());
  auto enough = with(5);
  for (int i = 0; i < 3; ++i) enough.step_takes(21);
  EXPECT_EQ(enough.told, std::vector<std::uint64_t>{12});
}

TEST(Steps, ThatTakeTwiceAsLongAreNotSlowYet) {
  auto run = with(10);
  for (int i = 0; i < 5; ++i) run.step_takes(20);
  EXPECT_TRUE(run.told.empty());
}

TEST(Steps, ASecondIsWorthSaying) {
  for (const double seconds : {0.999, 1.0}) {
    Course run;
    for (int i = 0; i < 20; ++i) run.step_takes(0.3);
    for (int i = 0; i < 3; ++i) run.step_takes(seconds);
    EXPECT_EQ(run.told.size(), seconds < 1 ? 0U : 1U) << seconds;
  }
}

TEST(Steps, WhatHasBecomeSlowIsToldWithTheMedians) {
  Steps steps(2);
  Duration at{};
  std::uint64_t step = 0;
  const auto takes = [&](std::initializer_list<int> seconds) {
    for (const int one : seconds) steps.done(at += std::chrono::seconds(one), ++step, std::nullopt);
  };
  takes({0, 10, 10, 10, 10, 10, 11, 12, 10, 30, 40, 50});
  const auto slow = steps.look(at);
  ASSERT_TRUE(slow);
  EXPECT_TRUE(slow->ended);
  EXPECT_EQ(slow->step, 12U);
  EXPECT_DOUBLE_EQ(slow->seconds, 40);
  EXPECT_DOUBLE_EQ(slow->median, 10);
}

// The three are held against the fifty before them, of which 26 decide.
TEST(Steps, TheMedianIsOfTheFiftyBefore) {
  for (const int recent : {24, 26}) {
    Course run;
    for (int i = 0; i < 100; ++i) run.step_takes(10);
    for (int i = 0; i < recent; ++i) run.step_takes(19);
    for (int i = 0; i < 3; ++i) run.step_takes(30);
    EXPECT_EQ(run.told.size(), recent == 24 ? 1U : 0U) << recent;
  }
}

TEST(Steps, FiveAreEnoughToCallTheOneThatGoesOnSlow) {
  auto few = with(4);
  few.waits(1000);
  EXPECT_TRUE(few.told.empty());
  auto enough = with(5);
  enough.waits(50);
  EXPECT_TRUE(enough.told.empty()) << "five times the median";
  enough.waits(0.001);
  EXPECT_EQ(enough.told, std::vector<std::uint64_t>{10});
}

TEST(Steps, OneThatGoesOnIsToldWithItsTime) {
  Steps steps(2);
  for (std::uint64_t step = 0; step <= 100; step += 10)
    steps.done(Duration(static_cast<Duration::rep>(step * 1000)), step, std::nullopt);
  const auto slow = steps.look(160s);
  ASSERT_TRUE(slow);
  EXPECT_FALSE(slow->ended);
  EXPECT_EQ(slow->step, 110U);
  EXPECT_DOUBLE_EQ(slow->seconds, 60);
  EXPECT_DOUBLE_EQ(slow->median, 1);
}

TEST(Steps, TwiceTheLongestThatThereWasIsNotSlowYet) {
  auto run = with(20);
  run.step_takes(40);
  run.waits(80);
  EXPECT_TRUE(run.told.empty());
  run.waits(0.001);
  EXPECT_EQ(run.told.size(), 1U);
}

}  // namespace
}  // namespace nlaunch::watch
