#include "record/timeline.h"

#include <gtest/gtest.h>

#include "supervise/events.h"

namespace nlaunch::record {
namespace {

using State = ProcessSpan::State;

const Json kPlan = Json::parse(R"json({
  "name": "grpo",
  "roles": [
    {"name": "engine", "kind": "engine", "ends_run": false, "ready": {"http": "x", "timeout_ms": 1000}},
    {"name": "learner", "kind": "learner", "ends_run": true, "ready": {"timeout_ms": 1000}}],
  "processes": [{"role": "engine", "node": 0, "gpus": [0]}, {"role": "learner", "node": 0, "gpus": [1]}],
  "idle_gpus": [[0, 2], [0, 3]],
  "watch": {"progress": "step (\\d+)"}})json");

/// A run whose events are told in seconds since it began.
class Told {
 public:
  explicit Told(Json plan = kPlan) { run_.plan = std::move(plan); }
  Told& submitted() {
    run_.job["submitted"] = time(0);
    return *this;
  }
  Told& event(double at, const std::string& what, Json fields = Json::object()) {
    fields["time"] = time(at);
    fields["event"] = what;
    run_.events.push_back(std::move(fields));
    return *this;
  }
  Told& process(double at, const std::string& what, const std::string& name, Json fields = Json::object()) {
    fields["process"] = name;
    return event(at, what, std::move(fields));
  }
  Told& attempt(double at, unsigned number) {
    run_.attempts.push_back({.number = number, .folder = {}});
    event(at, "attempt", {{"number", number}});
    return event(at + 2, "attempt-started", {{"attempt", number}});
  }
  /// Of the last attempt.
  Told& step(double at, std::uint64_t number, std::optional<double> seconds = std::nullopt) {
    Json step{{"time", time(at)}, {"event", "step"}, {"step", number}};
    if (seconds) step["seconds"] = *seconds;
    run_.attempts.back().steps.push_back(std::move(step));
    return *this;
  }
  [[nodiscard]] Timeline timeline(double now = 0, bool alive = false) const {
    return timeline_of(run_, began() + now, alive);
  }
  static double began() { return *supervise::parse_utc("2026-01-31T12:00:00.000Z"); }

 private:
  static std::string time(double at) {
    const auto milliseconds = static_cast<int>(at * 1000 + 0.5);
    return fmt::format("2026-01-31T12:{:02}:{:02}.{:03}Z", milliseconds / 60000, milliseconds / 1000 % 60,
                       milliseconds % 1000);
  }
  RunFiles run_;
};

/// A run of 40 s with ten steps of a second each.
Told good() {
  Told told;
  told.submitted().event(5, "run").attempt(5, 0);
  told.process(7, "process-started", "engine.0", {{"host", "node0"}})
      .process(13, "process-ready", "engine.0");
  told.process(13, "process-started", "learner.0", {{"host", "node0"}});
  for (int i = 1; i <= 10; ++i) told.step(20 + i, static_cast<std::uint64_t>(i));
  told.event(31, "run-ending", {{"outcome", "finished"}, {"what", "finished"}});
  told.process(31, "process-ended", "learner.0", {{"how", "exited with code 0"}});
  told.process(33, "process-ended", "engine.0", {{"how", "was terminated by SIGTERM"}});
  return told.event(33, "attempt-ended").event(33, "end", {{"outcome", "finished"}});
}

TEST(Timeline, EveryMomentIsInOnePhase) {
  const auto timeline = good().timeline();
  EXPECT_TRUE(timeline.over);
  EXPECT_DOUBLE_EQ(timeline.seconds, 33);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::queue), 5);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::preflight), 2);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::loading), 6);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::first_step), 8);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 10);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::shutdown), 2);
  double at = 0;
  for (const auto& span : timeline.phases) {
    EXPECT_DOUBLE_EQ(span.time.begin, at);
    at = span.time.end;
  }
  EXPECT_DOUBLE_EQ(at, timeline.seconds);
  EXPECT_NEAR(*timeline.ettr(), 10. / 33, 1e-9);
}

TEST(Timeline, GpusOfTheAllocationCountWhileTheRunHoldsThem) {
  const auto timeline = good().timeline();
  EXPECT_EQ(timeline.gpus, 4);  // two are idle
  EXPECT_DOUBLE_EQ(timeline.gpu_hours(Phase::productive), 10. * 4 / 3600);
  EXPECT_DOUBLE_EQ(timeline.gpu_hours(Phase::queue), 0);
}

TEST(Timeline, ProcessesAreStartingUntilTheyAreReady) {
  const auto timeline = good().timeline();
  ASSERT_EQ(timeline.processes.size(), 2);
  const auto& engine = timeline.processes[0];
  EXPECT_EQ(engine.name, "engine.0");
  EXPECT_EQ(engine.host, "node0");
  ASSERT_EQ(engine.spans.size(), 2);
  EXPECT_EQ(engine.spans[0].state, State::starting);
  EXPECT_DOUBLE_EQ(engine.spans[0].time.seconds(), 6);
  EXPECT_EQ(engine.spans[1].state, State::up);
  EXPECT_EQ(engine.spans[1].end, "was terminated by SIGTERM");
  // A role without a check is up from its start.
  ASSERT_EQ(timeline.processes[1].spans.size(), 1);
  EXPECT_EQ(timeline.processes[1].spans[0].state, State::up);
}

TEST(Timeline, TheTimeOfAStepIsWhatTheProcessReports) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  told.step(10, 1, 3).step(14, 2, 3).step(18, 4);
  const auto timeline = told.timeline();
  ASSERT_EQ(timeline.steps.size(), 3);
  EXPECT_DOUBLE_EQ(timeline.steps[0].seconds, 3);
  EXPECT_DOUBLE_EQ(timeline.steps[1].seconds, 3);
  EXPECT_DOUBLE_EQ(timeline.steps[2].seconds, 2);  // two steps since the report before
  // The first step itself is productive, what came before it is not.
  EXPECT_DOUBLE_EQ(timeline.in(Phase::first_step), 5);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 11);
}

TEST(Timeline, StepsThatAreDoneAgainWereLost) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  for (int i = 1; i <= 5; ++i) told.step(9 + i, static_cast<std::uint64_t>(i), 1);
  told.event(15, "run-ending", {{"outcome", "failed"}}).event(16, "attempt-ended").attempt(20, 1);
  told.process(22, "process-started", "learner.0");
  for (int i = 4; i <= 6; ++i) told.step(20 + i * 1.5, static_cast<std::uint64_t>(i), 1);
  told.event(30, "run-ending", {{"outcome", "finished"}}).event(30, "attempt-ended").event(30, "end");
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 2);  // steps 4 and 5 of the first attempt
  EXPECT_DOUBLE_EQ(timeline.in(Phase::restart), 4);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::shutdown), 1);
  EXPECT_EQ(std::ranges::count_if(timeline.steps, &TrainingStep::lost), 2);
}

TEST(Timeline, StepsAfterTheLastCheckpointOfAFailedRunAreLost) {
  auto plan = kPlan;
  plan["checkpoint"] = {{"dir", "/ckpt"}};
  Told told(plan);
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  for (int i = 1; i <= 5; ++i) told.step(9 + i, static_cast<std::uint64_t>(i), 1);
  told.process(12.5, "checkpoint", "learner.0", {{"path", "/ckpt/step_3"}, {"step", 3}});
  told.event(15, "run-ending", {{"outcome", "failed"}}).event(15, "attempt-ended").event(15, "end");
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 2);
  EXPECT_FALSE(timeline.steps[2].lost);
  EXPECT_TRUE(timeline.steps[3].lost);
}

TEST(Timeline, AStallBeginsWithTheLastStepAndEndsWithTheNext) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1).step(11, 2);
  told.event(30, "watch", {{"kind", "stalled"}, {"what", "no progress for 19 s, after step 2"}}).step(40, 3);
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::stalled), 29);
  ASSERT_EQ(timeline.marks.size(), 1);
  EXPECT_EQ(timeline.marks[0].what, "no progress for 19 s, after step 2");
}

TEST(Timeline, ARunWithoutReportedStepsIsTakenToTrain) {
  auto plan = kPlan;
  plan["watch"]["progress"] = "";
  Told told(plan);
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  told.event(12, "run-ending", {{"outcome", "finished"}}).event(12, "end");
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 10);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::first_step), 0);
}

TEST(Timeline, ARunThatGoesOnLastsUntilNow) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1).step(11, 2);
  EXPECT_DOUBLE_EQ(told.timeline(60, true).seconds, 60);
  EXPECT_DOUBLE_EQ(told.timeline(60, true).in(Phase::productive), 50);
  // Nobody leads it: it ended with its last event, whenever that is asked.
  EXPECT_DOUBLE_EQ(told.timeline(60, false).seconds, 11);
}

TEST(Timeline, SlowStepsTakeMoreThanTwiceTheMedian) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  for (int i = 1; i <= 9; ++i) told.step(10 + i, static_cast<std::uint64_t>(i), i == 5 ? 2.1 : 1.0);
  const auto timeline = told.timeline();
  const auto times = timeline.step_times();
  EXPECT_EQ(times.count, 8);  // without the first
  EXPECT_EQ(times.slow, 1);
  EXPECT_TRUE(timeline.steps[4].slow);
  EXPECT_DOUBLE_EQ(times.median, 1);
  EXPECT_DOUBLE_EQ(times.longest, 2.1);
}

TEST(Timeline, ACountThatBeginsAnewWithEachEpochGoesOn) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  for (int i = 0; i < 6; ++i) told.step(10 + i, static_cast<std::uint64_t>(i % 3 + 1));
  const auto timeline = told.timeline();
  EXPECT_EQ(timeline.steps.back().number, 6);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 0);
}

TEST(Timeline, AJobThatWasKilledWithItsNodeWaitedInTheQueue) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1).step(11, 2);
  told.event(100, "run").attempt(100, 1).process(102, "process-started", "learner.0").step(110, 3);
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::queue), 89);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 1);
  EXPECT_EQ(timeline.processes[0].spans.size(), 2);
  EXPECT_EQ(timeline.processes[0].spans[0].end, "lost");
}

TEST(Timeline, ALeaderThatTakesOverPausesNothing) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1).step(11, 2);
  told.event(12, "taken-over")
      .event(12, "attempt-started", {{"attempt", 0}})
      .process(12, "process-started", "learner.0");
  told.step(14, 3);
  const auto timeline = told.timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 4);
  EXPECT_DOUBLE_EQ(timeline.steps.back().seconds, 3);
  EXPECT_EQ(timeline.processes[0].spans.size(), 1);
}

TEST(Timeline, FollowersOfAReplicaAreUpFromTheirStart) {
  Told told;
  told.event(0, "run")
      .attempt(0, 0)
      .process(2, "process-started", "engine.0.0")
      .process(2, "process-started", "engine.0.1");
  const auto timeline = told.timeline(5, true);
  EXPECT_EQ(timeline.processes[0].spans[0].state, State::starting);
  EXPECT_EQ(timeline.processes[1].spans[0].state, State::up);
}

TEST(Timeline, ProcessesOfALostNodeAreLost) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "engine.0", {{"host", "nid7"}});
  told.event(4, "node-lost", {{"host", "nid7"}, {"why", "no answer"}});
  const auto timeline = told.timeline(9, true);
  EXPECT_EQ(timeline.processes[0].spans[0].end, "lost with its node");
  EXPECT_EQ(timeline.marks[0].what, "nid7: no answer");
}

TEST(Timeline, WhatIsNoCountOfStepsIsLeftOut) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  RunFiles run;
  for (const auto* step : {R"(-1)", R"(1e300)", R"("7")", R"(null)", R"(2.5)"}) {
    const auto event =
        Json::parse(fmt::format(R"({{"event":"step","time":"2026-01-31T12:00:09.000Z","step":{}}})", step));
    run.attempts.push_back({.number = 0, .folder = {}, .steps = {event}});
  }
  EXPECT_TRUE(timeline_of(run, 0, false).steps.empty());
  told.step(10, UINT64_MAX).step(11, UINT64_MAX - 1).step(12, 3);
  EXPECT_EQ(told.timeline().steps.size(), 3);
}

TEST(Timeline, FilesThatAreNoRunsAreAnEmptyOne) {
  EXPECT_DOUBLE_EQ(timeline_of({}, 1e9, true).seconds, 0);
  RunFiles run;
  run.plan = Json::parse(R"({"roles": 3, "processes": {"a": 1}, "idle_gpus": "none"})");
  run.events = {
      Json::parse(R"({"event": "run"})"), Json::parse(R"({"event": 7, "time": "yesterday"})"),
      Json::parse(R"({"event": "process-ready", "time": "2026-01-31T12:00:00.000Z", "process": "x.0"})")};
  EXPECT_EQ(timeline_of(run, 1e9, false).processes.size(), 1);
}

TEST(Timeline, TimesAreReadAsTheyAreWritten) {
  EXPECT_DOUBLE_EQ(*supervise::parse_utc("1970-01-02T00:00:00.250Z"), 86400.25);
  for (const auto* text : {"", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00.1Z",
                           "2026-01-31T12:00:00.", "2026-01-31T12:00:00.123+01:00"})
    EXPECT_FALSE(supervise::parse_utc(text)) << text;
  EXPECT_TRUE(supervise::parse_utc(supervise::utc_now()));
}

}  // namespace
}  // namespace nlaunch::record
