#include "watch/watcher.h"

#include <gtest/gtest.h>

#include <algorithm>

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
    EXPECT_EQ(run.look(at), step == 6 ? Said{"learner.2 has reported no steps, but the others have"} : Said{})
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
  EXPECT_EQ(run.look(800s + 300s), Said{"step 21 has been running for 300 s: the median is 40 s"});
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

TEST(Watcher, WithoutAnyThatIsWatchedAllAre) {
  for (const auto& watched : {std::vector<bool>{false, false}, std::vector<bool>{}}) {
    Watcher watcher{plan::Watch{}, watched};
    for (std::size_t i = 0; i < watched.size(); ++i) watcher.started(i, 0s);
    if (!watched.empty()) watcher.progress(1, 1min, 7, std::nullopt);
    EXPECT_EQ(watcher.summary().last_step.has_value(), !watched.empty());
    EXPECT_EQ(watcher.look(20min).size(), watched.empty() ? 0U : 1U);
  }
}

TEST(Watcher, WhereNobodyRunsNothingStalls) {
  Course run;
  for (std::size_t i = 0; i < 3; ++i) run.watcher.ended(i);
  EXPECT_EQ(run.look(2h), Said{}) << "the engine alone goes on";
  Watcher none{plan::Watch{}, {true}};
  EXPECT_TRUE(none.look(2h).empty()) << "nothing has been started";
}

TEST(Watcher, ProgressOfAnEarlierTimeDoesNotTurnTheClockBack) {
  Course run;
  run.watcher.progress(0, 5min, 2, std::nullopt);
  run.watcher.progress(1, 4min, 1, std::nullopt);
  EXPECT_EQ(run.look(14min + 59s), Said{});
  EXPECT_EQ(run.look(15min), Said{"no progress for 600 s, after step 2"});
}

TEST(Watcher, WhoHasEndedIsNeitherBehindNorMute) {
  Course run;
  run.watcher.progress(0, 1s, 1, std::nullopt);
  run.watcher.ended(0);
  run.watcher.ended(2);
  for (std::uint64_t step = 2; step <= 40; ++step) {
    run.watcher.progress(1, std::chrono::seconds(20 * step), step, std::nullopt);
    EXPECT_EQ(run.look(std::chrono::seconds(20 * step)), Said{}) << step;
  }
}

TEST(Watcher, ThePlansOthersAreNeitherBehindNorMute) {
  Watcher watcher{plan::Watch{}, {true, true, false}};
  for (std::size_t i = 0; i < 3; ++i) watcher.started(i, 0s);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    for (std::size_t i = 0; i < 2; ++i)
      watcher.progress(i, std::chrono::seconds(20 * step), step, std::nullopt);
    EXPECT_TRUE(watcher.look(std::chrono::seconds(20 * step)).empty()) << step;
  }
}

// Half of them is not most.
TEST(Watcher, MostHaveToReportSteps) {
  Watcher watcher{plan::Watch{}, {true, true, true, true}};
  for (std::size_t i = 0; i < 4; ++i) watcher.started(i, 0s);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    for (std::size_t i = 0; i < 2; ++i)
      watcher.progress(i, std::chrono::seconds(20 * step), step, std::nullopt);
    EXPECT_TRUE(watcher.look(std::chrono::seconds(20 * step)).empty()) << step;
  }
  watcher.progress(2, 401s, 20, std::nullopt);
  const auto said = watcher.look(401s);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(text_of(said[0], kNames), "engine.0 has reported no steps, but the others have");
}

TEST(Watcher, OneStepBehindIsNoLag) {
  for (const std::uint64_t behind : {1U, 2U}) {
    Course run;
    for (std::uint64_t step = 1; step <= 10; ++step) {
      for (std::size_t i = 0; i < 3; ++i)
        if (i != 1 || step <= 10 - behind)
          run.watcher.progress(i, std::chrono::seconds(step), step, std::nullopt);
    }
    const auto is_named = [&](Duration at) {
      const auto said = run.look(at);
      return std::ranges::find(said, "learner.1 is behind: at step 8, the others at 10") != said.end();
    };
    const auto its_last = std::chrono::seconds(10 - behind);
    EXPECT_FALSE(is_named(its_last + 10s)) << behind;
    EXPECT_EQ(is_named(its_last + 10s + 1ms), behind == 2) << behind;
  }
}

TEST(Watcher, WhoCatchesUpCanFallBehindAgain) {
  Course run;
  int named = 0;
  for (std::uint64_t step = 1; step <= 60; ++step) {
    const auto at = std::chrono::seconds(20 * step);
    run.watcher.progress(0, at, step, std::nullopt);
    run.watcher.progress(2, at, step, std::nullopt);
    if (step % 20 < 10) run.watcher.progress(1, at, step, std::nullopt);
    named += static_cast<int>(run.look(at).size());
  }
  EXPECT_EQ(named, 3);
}

TEST(Watcher, ARestartForgetsWhatWasToldOfIt) {
  Course run;
  run.step(5, 1min);
  EXPECT_EQ(run.look(11min).size(), 1U);
  run.watcher.started(0, 12min);
  EXPECT_EQ(run.look(71min + 59s), Said{});
  EXPECT_EQ(run.look(72min), Said{"no progress in the 3600 s since the start"});
}

TEST(Watcher, SecondsHaveADecimalBelowTen) {
  const auto text = [](double seconds) { return text_of(SlowStep{7, seconds, 1.25, true}, kNames); };
  EXPECT_EQ(text(9.94), "steps have slowed down: 9.9 s up to step 7, 1.2 s before");
  EXPECT_EQ(text(10), "steps have slowed down: 10 s up to step 7, 1.2 s before");
  EXPECT_EQ(text(10.4), "steps have slowed down: 10 s up to step 7, 1.2 s before");
}

TEST(Watcher, AtMostSixteenTotalsAreToldApart) {
  Course run;
  for (std::uint64_t total = 101; total <= 117; ++total)
    run.watcher.progress(0, 1s, total - 100, std::nullopt, total);
  for (std::uint64_t total = 101; total <= 117; ++total)
    run.watcher.progress(0, std::chrono::seconds(total), total - 60, std::nullopt, total);
  // The first of those that went on for at least half as long as the longest.
  const auto reached = run.watcher.summary().reached[0];
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->total, 101U);
  Course other;
  for (std::uint64_t total = 1; total <= 16; ++total) other.watcher.progress(0, 1s, 1, std::nullopt, total);
  other.watcher.progress(0, 2s, 2, std::nullopt, 17);
  other.watcher.progress(0, 900s, 3, std::nullopt, 17);
  EXPECT_NE(other.watcher.summary().reached[0]->total, 17U);
}

TEST(Watcher, ABarOfHalfTheTimeOfTheLongestMayBeTheTraining) {
  for (const bool half : {true, false}) {
    Course run;
    run.watcher.progress(0, 100s, 1, std::nullopt, 40);
    run.watcher.progress(0, 100s, 2, std::nullopt, 12);
    run.watcher.progress(0, half ? 150s : 149s, 3, std::nullopt, 40);
    run.watcher.progress(0, 200s, 4, std::nullopt, 12);
    EXPECT_EQ(run.watcher.summary().reached[0]->total, half ? 40U : 12U);
  }
}

TEST(Watcher, ATotalWithoutAStepIsNone) {
  Course run;
  run.watcher.progress(0, 1s, std::nullopt, std::nullopt, 40);
  EXPECT_FALSE(run.watcher.summary().reached[0]);
  run.watcher.progress(3, 1s, 1, std::nullopt, 40);
  EXPECT_FALSE(run.watcher.summary().reached[3]) << "it is not watched";
}

}  // namespace
}  // namespace nlaunch::watch
