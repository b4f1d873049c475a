#include "watch/steps.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace nlaunch::watch
