#include "supervise/stall_monitor.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

/// Two learners and an engine, whose progress is not the run's.
struct Monitored {
  sys::Loop& loop;
  plan::Plan plan;
  Rules rules;
  Lines said;
  std::vector<Json> recorded;
  std::vector<event::Abort> aborts;
  std::string collected;
  std::unique_ptr<Investigation> investigation;
  std::unique_ptr<StallMonitor> monitor;

  explicit Monitored(sys::Loop& on, OnStall on_stall = OnStall::abort, Judge judge = {}) : loop(on) {
    plan.watch.emplace();
    plan.watch->on_stall = on_stall;
    plan.watch->start = plan.watch->stall = 100ms;
    rules.processes.resize(3);
    for (const std::size_t learner : {0U, 1U}) rules.processes[learner].ends_run = true;
    Investigation::Options evidence;
    evidence.evidence = "/run/evidence";
    evidence.judge = std::move(judge);
    evidence.progress = [this] { return monitor->progress(); };
    evidence.say = [](const std::string&) {};
    evidence.record = [](std::string_view, const Json&) {};
    evidence.collect = [this](const action::Collect& collect) { collected = collect.folder; };
    investigation = std::make_unique<Investigation>(loop, std::move(evidence));
    monitor = std::make_unique<StallMonitor>(
        loop, StallMonitor::Options{.plan = plan,
                                    .rules = rules,
                                    .names = {"learner.0", "learner.1", "engine.0"},
                                    .investigation = *investigation,
                                    .say = [this](const std::string& sentence) { said.push_back(sentence); },
                                    .record =
                                        [this](std::string_view event, const Json& fields) {
                                          EXPECT_EQ(event, "watch");
                                          recorded.push_back(fields);
                                        },
                                    .abort = [this](const event::Abort& abort) { aborts.push_back(abort); }});
  }

  void start() const {
    for (ProcessIndex process = 0; process < 3; ++process) monitor->on(process_event::Started{process, 1});
  }
  void report(ProcessIndex process, std::int64_t step, double seconds = -1, std::int64_t total = -1) const {
    monitor->on(process_event::Progress{process, step, seconds, total});
  }
};

TEST(StallMonitor, SummarisesTheStepsAndWhoWasAtWhich) {
  sys::Loop loop;
  const Monitored run(loop);
  EXPECT_EQ(run.monitor->summary(), Json::parse(R"({"last_step": null, "steps": 0, "findings": [],
                                                     "by_process": {}})"));
  run.start();
  // The first three are not judged.
  for (std::int64_t step = 0; step <= 3; ++step) run.report(0, step, 100);
  for (std::int64_t step = 1; step <= 11; ++step) run.report(0, 3 + step, static_cast<double>(step), 40);
  run.report(1, 0);
  run.report(2, 99);
  const auto summary = run.monitor->summary();
  EXPECT_EQ(summary["last_step"], 14);
  EXPECT_EQ(summary["steps"], 14);
  EXPECT_EQ(summary["step_seconds"], Json::parse(R"({"median": 6.0, "p10": 2.0, "p90": 10.0, "max": 11.0})"));
  EXPECT_EQ(summary["by_process"], Json::parse(R"({"learner.0": 14, "learner.1": 0})"));
  EXPECT_EQ(summary["totals"], Json::parse(R"({"learner.0": 40})"));
  EXPECT_EQ(run.monitor->progress().last_step, 14U);
}

TEST(StallMonitor, WhatAReportDoesNotSayIsNotZero) {
  sys::Loop loop;
  const Monitored run(loop);
  run.start();
  run.report(0, -1, 3, 40);
  auto summary = run.monitor->summary();
  EXPECT_TRUE(summary["last_step"].is_null());
  EXPECT_FALSE(summary.contains("totals"));
  for (std::int64_t step = 0; step <= 4; ++step) run.report(0, step, 0, 0);
  summary = run.monitor->summary();
  EXPECT_EQ(summary["last_step"], 4);
  EXPECT_EQ(summary["step_seconds"]["max"], 0.0) << "a step of no time is one";
  EXPECT_EQ(summary["totals"]["learner.0"], 0);
}

// It looks once a second, so all that takes a look is here.
TEST(StallMonitor, DoesWhatThePlanSaysWhenARunHangs) {
  sys::Loop loop;
  const auto judge = [](const std::string& folder, const watch::Progress& progress) {
    EXPECT_TRUE(folder.starts_with("/run/evidence/"));
    EXPECT_EQ(progress.last_step, 3U);
    Judgement judgement;
    judgement.sentence = "learner.1 sleeps";
    judgement.fault = 1;
    judgement.json = {{"fault", "learner.1"}};
    return judgement;
  };
  Monitored warned(loop, OnStall::warn);
  Monitored dumped(loop, OnStall::dump, judge);
  Monitored aborted(loop, OnStall::abort, judge);
  Monitored restarted(loop, OnStall::restart);
  for (const auto* run : {&warned, &dumped, &aborted, &restarted}) {
    run->start();
    run->report(0, 3);
  }
  Monitored stopped(loop, OnStall::warn);
  stopped.start();
  stopped.monitor->stop();
  Monitored ended(loop, OnStall::warn);
  ended.start();
  for (const ProcessIndex learner : {0U, 1U})
    ended.monitor->on(process_event::Ended{learner, sys::WaitStatus::exited(0)});
  Monitored investigated(loop, OnStall::warn);
  investigated.start();
  investigated.investigation->begin([](const std::string&, const Judgement&) {});
  Monitored gone(loop, OnStall::warn);
  gone.start();
  gone.monitor.reset();
  // Learner 1 tells no step where others do; and the steps of one become slow.
  Monitored mute(loop, OnStall::warn);
  mute.plan.watch->stall = 1min;
  mute.rules.processes[2].ends_run = true;
  mute.monitor.reset();
  Lines said;
  std::vector<Json> recorded;
  StallMonitor all_three(loop,
                         {.plan = mute.plan,
                          .rules = mute.rules,
                          .names = {"learner.0", "learner.1", "learner.2"},
                          .investigation = *mute.investigation,
                          .say = [&](const std::string& sentence) { said.push_back(sentence); },
                          .record = [&](std::string_view, const Json& fields) { recorded.push_back(fields); },
                          .abort = {}});
  for (ProcessIndex process = 0; process < 3; ++process) all_three.on(process_event::Started{process, 1});
  for (std::int64_t step = 0; step < 20; ++step) {
    for (const ProcessIndex process : {0U, 2U})
      all_three.on(process_event::Progress{process, step, step < 15 ? 1.0 : 50.0, -1});
  }
  loop.after(1300ms, [&] { loop.stop(); });
  loop.run();

  ASSERT_EQ(warned.said.size(), 1U);
  const auto text = warned.said.front();
  EXPECT_TRUE(text.starts_with("no progress for 1.") && text.ends_with(" s, after step 3")) << text;
  ASSERT_EQ(warned.recorded.size(), 1U);
  EXPECT_EQ(warned.recorded[0]["kind"], "stalled");
  EXPECT_EQ(warned.recorded[0]["what"], text);
  EXPECT_GE(warned.recorded[0]["at_ms"], 1000);
  EXPECT_LE(warned.recorded[0]["at_ms"], 1300);
  EXPECT_EQ(warned.monitor->summary()["findings"], Json(warned.recorded));
  EXPECT_EQ(warned.collected, "");

  for (auto* run : {&dumped, &aborted, &restarted}) {
    ASSERT_EQ(run->said.size(), 1U);
    EXPECT_TRUE(run->said[0].ends_with("; collecting evidence from all processes")) << run->said[0];
    EXPECT_TRUE(run->aborts.empty()) << "nothing is ended without evidence";
    run->investigation->on({});
    const auto finding = run->monitor->summary()["findings"][0];
    EXPECT_EQ(finding["evidence"], run->collected);
    EXPECT_EQ(finding["what"], run->recorded[0]["what"]);
    EXPECT_EQ(run->aborts.size(), run == &dumped ? 0U : 1U);
  }
  EXPECT_EQ(dumped.monitor->summary()["findings"][0]["verdict"]["fault"], "learner.1");
  const auto what = aborted.recorded[0]["what"].get<std::string>();
  EXPECT_EQ(aborted.aborts[0].reason, what + ": learner.1 sleeps");
  EXPECT_EQ(aborted.aborts[0].exit_code, 124);
  EXPECT_EQ(aborted.aborts[0].process, 1U);
  EXPECT_EQ(restarted.aborts[0].reason, restarted.recorded[0]["what"].get<std::string>());
  EXPECT_FALSE(restarted.aborts[0].process);

  for (const auto* run : {&stopped, &ended, &investigated, &gone}) EXPECT_EQ(run->said, Lines{});
  ASSERT_EQ(recorded.size(), 2U);
  EXPECT_EQ(recorded[0]["kind"], "slow");
  EXPECT_EQ(recorded[1]["kind"], "mute");
  EXPECT_EQ(said, (Lines{recorded[0]["what"].get<std::string>(),
                         "learner.1 has reported no steps, but the others have"}));
  EXPECT_TRUE(said[0].starts_with("steps have slowed down: 50 s up to step 19")) << said[0];
}

}  // namespace
}  // namespace nlaunch::supervise
