#include "watch/watcher.h"

#include <gtest/gtest.h>

namespace nlaunch::watch {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kNames{"learner.0", "learner.1", "learner.2", "engine.0"};

/// Three learners, and an engine whose progress is not the run's.
struct Course {
  Watcher watcher{plan::Watch{}, {true, true, true, false}};

  Course() {
    for (std::size_t i = 0; i < kNames.size(); ++i) watcher.started(i, 0s);
  }
  /// What all three learners report.
  void step(std::uint64_t number, Duration at) {
    for (std::size_t i = 0; i < 3; ++i) watcher.progress(i, at, number, std::nullopt);
  }
  std::vector<std::string> look(Duration at) {
    std::vector<std::string> said;
    for (const auto& finding : watcher.look(at)) said.push_back(text_of(finding, kNames));
    return said;
  }
};

using Said = std::vector<std::string>;

TEST(Watcher, WithoutAnyProgressTheStartHasItsOwnTime) {
  Course run;
  EXPECT_EQ(run.look(59min), Said{});
  EXPECT_EQ(run.look(60min), Said{"no progress in the 3600 s since the start"});
  EXPECT_EQ(run.look(61min), Said{});  // once
}

TEST(Watcher, TheStallClockStartsWithTheFirstProgress) {
  Course run;
  run.step(1, 30min);
  EXPECT_EQ(run.look(39min + 59s), Said{});
  EXPECT_EQ(run.look(40min), Said{"no progress for 600 s, after step 1"});
  EXPECT_EQ(run.look(50min), Said{});
  run.step(2, 51min);
  EXPECT_EQ(run.look(52min), Said{});
  EXPECT_EQ(run.look(61min), Said{"no progress for 600 s, after step 2"});
}

TEST(Watcher, WhatTheEngineSaysIsNoProgress) {
  Course run;
  run.step(1, 1min);
  run.watcher.progress(3, 9min, std::nullopt, std::nullopt);
  EXPECT_EQ(run.look(11min), Said{"no progress for 600 s, after step 1"});
}

TEST(Watcher, TheSameStepSaidAgainIsNoProgress) {
  Course run;
  run.step(1, 1min);
  run.step(1, 9min);
  EXPECT_EQ(run.look(11min), Said{"no progress for 600 s, after step 1"});
}

TEST(Watcher, ACountThatBeginsAgainIsProgress) {
  Course run;
  auto at = 0s;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::uint64_t step = 1; step <= 5; ++step) {
      run.step(step, at += 240s);
      EXPECT_EQ(run.look(at), Said{}) << epoch << " " << step;
    }
  }
  EXPECT_EQ(run.watcher.summary().last_step, 5U);
  EXPECT_EQ(run.watcher.summary().steps, 14U);
  EXPECT_EQ(run.look(at + 600s), Said{"no progress for 600 s, after step 5"});
}

TEST(Watcher, WhoResumesFromACheckpointCountsFromThere) {
  Course run;
  for (std::uint64_t step = 1; step <= 40; ++step) run.step(step, std::chrono::seconds(10 * step));
  for (std::size_t i = 0; i < 3; ++i) {
    run.watcher.ended(i);
    run.watcher.started(i, 500s);
  }
  for (std::uint64_t step = 21; step <= 30; ++step) {
    const auto at = std::chrono::seconds(800 + 10 * step);
    run.step(step, at);
    EXPECT_EQ(run.look(at), Said{}) << step;
  }
  EXPECT_EQ(run.watcher.summary().last_step, 30U);
}

TEST(Watcher, OutputWithoutAStepIsProgress) {
  Course run;
  run.watcher.progress(0, 1min, std::nullopt, std::nullopt);
  EXPECT_EQ(run.look(10min), Said{});
  EXPECT_EQ(run.look(11min), Said{"no progress for 600 s"});
}

TEST(Watcher, OneProcessThatGetsOnIsEnough) {
  Course run;
  for (std::uint64_t step = 1; step < 100; ++step) {
    run.watcher.progress(0, std::chrono::minutes(step), step, std::nullopt);
    EXPECT_EQ(run.look(std::chrono::minutes(step)), Said{}) << step;
  }
}

TEST(Watcher, AfterARestartTheModelIsLoadedAgain) {
  Course run;
  run.step(1, 1min);
  run.watcher.ended(1);
  run.watcher.started(1, 5min);
  EXPECT_EQ(run.look(30min), Said{});
  EXPECT_EQ(run.look(65min), Said{"no progress in the 3600 s since the start"});
}

TEST(Watcher, WhoFallsBehindIsNamedOnce) {
  Course run;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    const auto at = std::chrono::seconds(20 * step);
    run.watcher.progress(0, at, step, std::nullopt);
    run.watcher.progress(2, at, step, std::nullopt);
    if (step <= 10) run.watcher.progress(1, at, step, std::nullopt);
    const auto said = run.look(at);
    EXPECT_EQ(said, step == 13 ? Said{"learner.1 is behind: at step 10, the others at 13"} : Said{}) << step;
  }
}

// The seconds are what a log says, however many.
TEST(Watcher, StepsThatTakeForeverLeaveTimeToCatchUp) {
  Course run;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    const auto at = std::chrono::seconds(20 * step);
    run.watcher.progress(0, at, step, 1e300);
    run.watcher.progress(2, at, step, 1e300);
    if (step <= 10) run.watcher.progress(1, at, step, 1e300);
    EXPECT_EQ(run.look(at), Said{}) << step;
  }
}

TEST(Watcher, WhoReportsNothingWhereTheOthersDoIsNamed) {
  Course run;
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const auto at = std::chrono::seconds(20 * step);
    run.watcher.progress(0, at, step, std::nullopt);
    run.watcher.progress(1, at, step, std::nullopt);
    EXPECT_EQ(run.look(at), step == 6 ? Said{"learner.2 has reported no step, the others have"} : Said{})
        << step;
  }
}

TEST(Watcher, WhereRankZeroAloneReportsNobodyIsMissed) {
  Course run;
  for (std::uint64_t step = 1; step <= 30; ++step) {
    const auto at = std::chrono::seconds(20 * step);
    run.watcher.progress(0, at, step, std::nullopt);
    EXPECT_EQ(run.look(at), Said{});
  }
}

TEST(Watcher, SlowStepsAreASentence) {
  Course run;
  for (std::uint64_t step = 1; step <= 20; ++step) run.step(step, std::chrono::seconds(40 * step));
  EXPECT_EQ(run.look(800s + 300s), Said{"step 21 goes on for 300 s: the median is 40 s"});
}

TEST(Watcher, SumsUp) {
  Course run;
  for (std::uint64_t step = 1; step <= 9; ++step) run.step(step, std::chrono::seconds(2 * step));
  run.watcher.progress(1, 30s, 10, std::nullopt);
  const auto summary = run.watcher.summary();
  EXPECT_EQ(summary.last_step, 10U);
  EXPECT_EQ(summary.steps, 9U);
  EXPECT_DOUBLE_EQ(median(summary.seconds), 2);
  EXPECT_EQ(summary.by_process, (std::vector<std::optional<std::uint64_t>>{9, 10, 9, std::nullopt}));
}

// transformers draws a bar of each evaluation, between the steps and after the last one, and takes it away
// before it is at its end.
TEST(Watcher, TheTotalIsThatOfTheTrainingAndNotOfAnEvaluation) {
  Course run;
  Duration at = 1s;
  const auto report = [&](std::uint64_t step, std::uint64_t total) {
    run.watcher.progress(0, at += 1s, step, std::nullopt, total);
  };
  report(0, 51);  // files that are read
  report(51, 51);
  for (std::uint64_t step = 0; step <= 3; ++step) {
    report(step, 40);
    report(0, 12);
    report(9, 12);
  }
  const auto reached = run.watcher.summary().reached;
  ASSERT_TRUE(reached[0]);
  EXPECT_EQ(reached[0]->step, 3U);
  EXPECT_EQ(reached[0]->total, 40U);
  EXPECT_FALSE(reached[1]);
}

}  // namespace
}  // namespace nlaunch::watch
