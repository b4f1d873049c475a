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
  /// What `diagnose` found in the last attempt.
  Told& diagnosis(const std::string& why) {
    run_.attempts.back().diagnosis["findings"].push_back({{"why", why}});
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
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 3);  // steps 4 and 5 of the first attempt, and what it did of 6
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
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 3);  // with the step that was in progress
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

TEST(Timeline, ARunThatFailedBeforeItsFirstStepDidNotTrain) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  told.event(12, "run-ending", {{"outcome", "failed"}}).event(12, "end");
  EXPECT_DOUBLE_EQ(told.timeline().in(Phase::first_step), 10);
  EXPECT_DOUBLE_EQ(told.timeline().in(Phase::productive), 0);
}

TEST(Timeline, TheStepInProgressIsLostUnlessItIsFinishedWhileTheRunStops) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1, 1).step(20, 2);
  told.process(23, "checkpoint", "learner.0", {{"step", 2}});  // what came before it is not lost
  told.event(28, "run-ending", {{"outcome", "walltime"}});
  auto finishes = told;
  told.event(34, "attempt-ended").event(34, "end");
  EXPECT_DOUBLE_EQ(told.timeline().in(Phase::lost), 5);
  EXPECT_DOUBLE_EQ(told.timeline().in(Phase::shutdown), 6);
  finishes.step(30, 3).event(34, "attempt-ended").event(34, "end");
  EXPECT_DOUBLE_EQ(finishes.timeline().in(Phase::lost), 0);
  EXPECT_DOUBLE_EQ(finishes.timeline().in(Phase::productive), 19);
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

using Kind = Cause::Kind;

double cost_in(const Cost& cost, Phase phase) {
  return cost.seconds[static_cast<std::size_t>(phase)];
}

TEST(Costs, AGoodRunCostsItsStartAndItsEnd) {
  const auto timeline = good().timeline();
  const auto costs = costs_of(timeline);
  ASSERT_EQ(costs.size(), 2);
  EXPECT_EQ(costs[0].cause.kind, Kind::first_start);
  EXPECT_DOUBLE_EQ(cost_in(costs[0], Phase::queue), 5);
  EXPECT_DOUBLE_EQ(cost_in(costs[0], Phase::first_step), 8);
  EXPECT_DOUBLE_EQ(costs[0].total(), 21);
  EXPECT_DOUBLE_EQ(timeline.gpu_hours(costs[0]), 16. * 4 / 3600);  // not in the queue
  EXPECT_EQ(costs[1].cause.kind, Kind::finished);
  EXPECT_DOUBLE_EQ(costs[1].total(), 2);
}

TEST(Costs, AFailureCostsLostStepsShutdownTheWaitAndTheNextStart) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  for (int i = 1; i <= 5; ++i) told.step(9 + i, static_cast<std::uint64_t>(i), 1);
  told.diagnosis("a GPU had no memory left");
  told.event(15, "run-ending", {{"outcome", "failed"}, {"what", "learner.0 exited with code 1 after 15.0s"}});
  told.event(16, "attempt-ended", {{"what", "learner.1 raised RuntimeError"}})
      .attempt(20, 1)
      .process(25, "process-started", "learner.0");
  for (int i = 4; i <= 6; ++i) told.step(26 + i, static_cast<std::uint64_t>(i), 1);
  told.event(32, "run-ending", {{"outcome", "finished"}}).event(32, "attempt-ended").event(32, "end");
  const auto costs = costs_of(told.timeline());
  ASSERT_EQ(costs.size(), 2);
  const auto& failure = costs[0];
  EXPECT_EQ(failure.cause.kind, Kind::failure);
  EXPECT_EQ(failure.cause.what, "learner.1 raised RuntimeError");  // which is known once all have exited
  EXPECT_EQ(failure.cause.why, "a GPU had no memory left");
  EXPECT_EQ(failure.cause.restart, 1);
  EXPECT_EQ(failure.cause.attempt, 0);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::lost), 3);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::shutdown), 1);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::restart), 4);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::preflight), 2);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::loading), 3);
  EXPECT_DOUBLE_EQ(cost_in(failure, Phase::first_step), 4);
  EXPECT_EQ(costs[1].cause.kind, Kind::first_start);
}

/// A chain of three jobs. The second one dies with its node, and Slurm requeues it.
Told chain() {
  Told told;
  told.submitted().event(100, "run", {{"job", "7"}}).attempt(100, 0);
  told.process(110, "process-started", "learner.0");
  for (int i = 1; i <= 4; ++i) told.step(110 + i * 10, static_cast<std::uint64_t>(i), 10);
  told.event(156, "run-ending", {{"outcome", "walltime"}, {"what", "stopped"}});
  told.event(160, "attempt-ended")
      .event(161, "end", {{"outcome", "walltime"}})
      .event(161, "goes-on", {{"job", "8"}});
  told.event(400, "run", {{"job", "8"}}).attempt(400, 1).process(404, "process-started", "learner.0");
  told.step(420, 4, 10).step(430, 5);  // it had saved step 3
  told.event(600, "run", {{"job", "8"}}).attempt(600, 2).process(604, "process-started", "learner.0");
  told.step(620, 6, 10).step(630, 7);
  told.event(633, "run-ending", {{"outcome", "walltime"}, {"what", "stopped"}});
  told.event(640, "attempt-ended")
      .event(640, "end", {{"outcome", "walltime"}})
      .event(640, "goes-on", {{"job", "9"}});
  told.event(700, "run", {{"job", "9"}}).attempt(700, 3).process(704, "process-started", "learner.0");
  told.step(720, 8, 10).event(721, "run-ending", {{"outcome", "finished"}}).event(721, "attempt-ended");
  return told.event(722, "end", {{"outcome", "finished"}});
}

TEST(Costs, BetweenTheJobsOfAChainTheRunWaitsInTheQueueAndHoldsNoGpu) {
  const auto timeline = chain().timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::queue), 100 + 239 + 170 + 60);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::restart), 0);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::productive), 30 + 20 + 20 + 11);
  EXPECT_DOUBLE_EQ(timeline.seconds, 722);
  EXPECT_NEAR(*timeline.ettr(), 81. / 722, 1e-9);
  const auto costs = costs_of(timeline);
  ASSERT_EQ(costs.size(), 5);
  double seconds = timeline.in(Phase::productive);
  for (const auto& cost : costs) seconds += cost.total();
  EXPECT_NEAR(seconds, timeline.seconds, 1e-9);

  const auto& first = costs[0];  // the walltime of job 7
  EXPECT_EQ(first.cause.kind, Kind::walltime);
  EXPECT_EQ(first.cause.job, "7");
  EXPECT_EQ(first.cause.restart, 0);
  EXPECT_DOUBLE_EQ(cost_in(first, Phase::lost), 10 + 6);  // step 4, and the one in progress
  EXPECT_DOUBLE_EQ(cost_in(first, Phase::queue), 239);
  EXPECT_DOUBLE_EQ(first.held(), 16 + 5 + 2 + 2 + 6);
  EXPECT_DOUBLE_EQ(timeline.gpu_hours(first), 31. * 4 / 3600);
}

TEST(Costs, EachJobOfAChainHasACauseOfItsOwn) {
  std::map<std::pair<Kind, std::string>, Cost> costs;
  for (const auto& cost : costs_of(chain().timeline())) costs[{cost.cause.kind, cost.cause.job}] = cost;
  EXPECT_DOUBLE_EQ(costs.at({Kind::first_start, ""}).held(), 2 + 8);
  const auto& killed = costs.at({Kind::killed, "8"});
  EXPECT_EQ(killed.cause.what, "job 8 was killed");
  EXPECT_DOUBLE_EQ(cost_in(killed, Phase::queue), 170);
  EXPECT_DOUBLE_EQ(killed.held(), 2 + 2 + 6);
  const auto& second = costs.at({Kind::walltime, "8"});
  EXPECT_DOUBLE_EQ(cost_in(second, Phase::lost), 3);
  EXPECT_DOUBLE_EQ(cost_in(second, Phase::queue), 60);
  EXPECT_DOUBLE_EQ(costs.at({Kind::finished, "9"}).total(), 1);
}

TEST(Costs, AJobThatWasKilledAtItsWalltimeHeldItsGpusUntilThen) {
  Told told;
  told.event(0, "run", {{"job", "7"}, {"walltime_end", "2026-01-31T12:01:00.000Z"}}).attempt(0, 0);
  told.process(2, "process-started", "learner.0").step(30, 1, 10).step(40, 2);
  auto died = told;
  told.event(100, "run", {{"job", "8"}}).attempt(100, 1).process(102, "process-started", "learner.0");
  const auto timeline = told.step(120, 3, 10).timeline();
  EXPECT_DOUBLE_EQ(timeline.in(Phase::lost), 20);
  EXPECT_DOUBLE_EQ(timeline.in(Phase::queue), 40);
  const auto costs = costs_of(timeline);
  EXPECT_EQ(costs[0].cause.kind, Kind::walltime);
  EXPECT_EQ(costs[0].cause.job, "7");
  EXPECT_DOUBLE_EQ(costs[0].held(), 20 + 2 + 8);
  // Nobody knows when a run that nobody continued was killed.
  EXPECT_DOUBLE_EQ(died.timeline().seconds, 40);
}

TEST(Costs, AStallThatPassesCostsItsTimeAndOneThatDoesNotCostsTheNextStartAsWell) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0").step(10, 1).step(11, 2);
  told.event(30, "watch", {{"kind", "stalled"}, {"what", "no progress for 19 s, after step 2"}}).step(35, 3);
  told.event(60, "watch", {{"kind", "stalled"}, {"what", "no progress for 19 s, after step 3"}});
  told.event(61, "evidence", {{"verdict", "learner.1 waits"}});
  told.event(62, "run-ending", {{"outcome", "stalled"}, {"what", "no progress"}}).event(63, "attempt-ended");
  told.attempt(64, 1).process(66, "process-started", "learner.0").step(70, 3, 1);
  const auto costs = costs_of(told.timeline(70, true));
  ASSERT_EQ(costs.size(), 3);
  EXPECT_EQ(costs[0].cause.what, "no progress for 19 s, after step 3");
  EXPECT_EQ(costs[0].cause.why, "learner.1 waits");
  EXPECT_EQ(costs[0].cause.restart, 1);
  // Step 3 was done again: it was lost by the second stall, not by the first one.
  EXPECT_DOUBLE_EQ(cost_in(costs[0], Phase::stalled), 27);
  EXPECT_DOUBLE_EQ(costs[0].total(), 27 + 1 + 1 + 2 + 3);
  EXPECT_EQ(costs[1].cause.what, "no progress for 19 s, after step 2");
  EXPECT_DOUBLE_EQ(costs[1].total(), 24);
}

TEST(Costs, ALearnerThatRestartsIsWhyItsRunLoadsAgain) {
  const auto restarted = [](const std::string& how, bool requested) {
    Told told;
    told.event(0, "run")
        .attempt(0, 0)
        .process(2, "process-started", "learner.0")
        .process(2, "process-started", "learner.1");
    told.step(10, 1).step(11, 2);
    if (requested) told.event(12, "request", {{"kind", "restart"}, {"what", "learner"}, {"granted", true}});
    told.process(13, "process-ended", "learner.1", {{"how", how}})
        .process(13, "process-restart", "learner.1");
    told.process(13, "process-ended", "learner.0", {{"how", "was terminated by SIGTERM"}});
    told.process(13, "process-restart", "learner.0");
    return costs_of(told.process(40, "process-started", "learner.0").timeline(40, true));
  };
  const auto failed = restarted("exited with code 1", false);
  ASSERT_EQ(failed.size(), 2);
  EXPECT_EQ(failed[0].cause.kind, Kind::failure);
  EXPECT_EQ(failed[0].cause.what, "learner.1 exited with code 1; it restarted");
  EXPECT_DOUBLE_EQ(cost_in(failed[0], Phase::lost), 2);
  EXPECT_DOUBLE_EQ(cost_in(failed[0], Phase::loading), 27);
  const auto requested = restarted("exited with code 143", true);
  ASSERT_EQ(requested.size(), 2);
  EXPECT_EQ(requested[0].cause.kind, Kind::request);
  EXPECT_EQ(requested[0].cause.what, "learner.1 restarted on request");
}

TEST(Costs, ARunThatNobodyLeadsWasKilled) {
  Told told;
  told.event(0, "run").attempt(0, 0).process(2, "process-started", "learner.0");
  const auto timeline = told.process(9, "process-ready", "learner.0").timeline(60, false);
  EXPECT_EQ(timeline.causes.back().kind, Kind::killed);
  EXPECT_EQ(timeline.causes.back().what, "nlaunch was killed");
}

TEST(Costs, EventsInAnyOrderAreDividedAmongTheirCauses) {
  const char* const names[] = {"run",   "attempt", "attempt-started", "attempt-ended", "run-ending",
                               "watch", "end",     "goes-on"};
  std::uint32_t random = 1;
  for (int round = 0; round < 200; ++round) {
    Told told;
    told.event(0, "run").attempt(0, 0);
    for (int at = 3; at < 60; ++at) {
      random = random * 1664525 + 1013904223;
      const auto one = random >> 16;
      if (one % 3 == 0) {
        told.step(at, one / 8 % 4);
      } else if (one % 3 == 1) {
        told.process(at, one % 2 == 0 ? "process-started" : "process-restart", "learner.0");
      } else {
        told.event(at, names[one / 8 % 8],
                   {{"kind", "stalled"}, {"outcome", one % 2 == 0 ? "stalled" : "failed"}});
      }
    }
    const auto timeline = told.timeline(60, round % 2 == 0);
    double seconds = timeline.in(Phase::productive);
    for (const auto& cost : costs_of(timeline)) seconds += cost.total();
    EXPECT_NEAR(seconds, timeline.seconds, 1e-9);
    EXPECT_TRUE(std::ranges::is_sorted(timeline.causes, {}, &Cause::at));
  }
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

TEST(Timeline, HasTheExceptionsAndThePagesOfTrackers) {
  auto told = good();
  told.process(41, "process-raised", "learner.0", {{"exception", "ValueError: a NaN"}});
  for (const auto* url :
       {"https://wandb.ai/a/b/runs/c", "https://wandb.ai/a/b/runs/c", "javascript:alert(1)"})
    told.process(41, "link", "learner.0", {{"kind", "wandb"}, {"url", url}});
  told.process(41, "link", "learner.0", {{"kind", 7}, {"url", {1}}});
  const auto timeline = told.timeline();
  EXPECT_EQ(timeline.marks.back().what, "learner.0 raised ValueError: a NaN");
  ASSERT_EQ(timeline.links.size(), 1);
  EXPECT_EQ(timeline.links[0].str(), "wandb: https://wandb.ai/a/b/runs/c (learner.0)");
  EXPECT_EQ(timeline.processes.size(), good().timeline().processes.size());
}

TEST(Timeline, FilesThatAreNoRunsAreAnEmptyOne) {
  EXPECT_DOUBLE_EQ(timeline_of({}, 1e9, true).seconds, 0);
  EXPECT_TRUE(costs_of(timeline_of({}, 1e9, true)).empty());
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
