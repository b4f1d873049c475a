#include "unit/supervise/supervised.h"

namespace nlaunch::supervise {
namespace {

/// Whose checkpoints are watched.
class Saving : public Supervised {
 protected:
  Saving() {
    auto& how = plan.checkpoint.emplace();
    how.dir = "${run.dir}/ckpt";
    how.folder = R"(step_(\d+))";
    how.complete = "done";
    how.wait = 60s;
    plan.watch.emplace().progress = "step";
  }
  void save(int step, bool complete) {
    const auto checkpoint = folder / "ckpt" / fmt::format("step_{}", step);
    fs::create_directories(checkpoint);
    if (complete) std::ofstream(checkpoint / "done") << "yes";
  }
  void interrupt(int signal) { tell(1s, process_event::Signal{signal}); }
  [[nodiscard]] bool has_stopped() const {
    return std::ranges::any_of(backend.performed,
                               [](const auto& what) { return what.contains(" to group "); });
  }
};

TEST_F(Saving, WhoStopsARunWaitsForTheCheckpointThatIsBeingWritten) {
  bool stopped_at_once = true;
  const auto outcome = run([&] {
    save(10, true);
    save(20, false);
    tell(1s, process_event::Progress{0, 23, 1, 100});
    interrupt(SIGINT);
    stopped_at_once = has_stopped();
    loop.after(700ms, [this] { save(20, true); });
  });
  EXPECT_FALSE(stopped_at_once);
  EXPECT_EQ(outcome.checkpoint->path, (folder / "ckpt" / "step_20").string());
  EXPECT_EQ(outcome.checkpoint->step, 20U);
  EXPECT_EQ(outcome.last_step, 23U);
  EXPECT_EQ(saved_sentence(outcome, plan),
            fmt::format("the newest complete checkpoint is {} (step 20); the 3 steps after "
                        "it are not saved",
                        outcome.checkpoint->path));
  EXPECT_EQ(recorded_as("checkpoint-awaited"), Lines{R"({"event":"checkpoint-awaited","folder":"step_20"})"});
  const auto all = said();
  EXPECT_EQ(std::ranges::count(
                all,
                "waiting up to 1m for checkpoint step_20, which is being written; press Ctrl-C again "
                "to skip the wait"),
            1);
}

TEST_F(Saving, WhoAsksAgainDoesNotWait) {
  for (const int again : {SIGINT, SIGTERM}) {
    fs::remove(folder / "events.jsonl");
    backend.performed.clear();
    const auto begin = std::chrono::steady_clock::now();
    const auto outcome = run([&] {
      save(20, false);
      interrupt(SIGINT);
      EXPECT_FALSE(has_stopped());
      interrupt(again);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    EXPECT_EQ(std::get<StoppedBySignal>(outcome.cause).signal, again);
    EXPECT_EQ(saved_sentence(outcome, plan), "no complete checkpoint was found");
    fs::remove_all(folder / "ckpt");
  }
}

TEST_F(Saving, ItWaitsForSoLongAndNoLonger) {
  plan.checkpoint->wait = 600ms;
  const auto outcome = run([&] {
    save(20, false);
    interrupt(SIGINT);
  });
  EXPECT_EQ(std::get<StoppedBySignal>(outcome.cause).signal, SIGINT);
  const auto all = said();
  EXPECT_EQ(std::ranges::count(all, "checkpoint step_20 is still incomplete after 600ms"), 1);
}

TEST_F(Saving, NobodyWaitsForWhatDoesNotStopTheRunOrKillsIt) {
  run([&] {
    save(20, false);
    interrupt(SIGUSR1);
    EXPECT_TRUE(recorded_as("checkpoint-awaited").empty());
    interrupt(SIGQUIT);
  });
  EXPECT_TRUE(recorded_as("checkpoint-awaited").empty());
  EXPECT_EQ(std::ranges::count(backend.performed, "kill all"), 1);
}

TEST_F(Saving, WithoutAFolderItKnowsWhatTheOutputNames) {
  plan.checkpoint->dir.clear();
  const auto outcome = run([&] {
    tell(1s, process_event::Progress{0, 7, 1, 100});
    tell(1s, process_event::Saved{0, "/a/7"});
    tell(1s, process_event::Saved{1, "/a/7"});
    tell(1s, process_event::Progress{0, 8, 1, 100});
    interrupt(SIGINT);
  });
  EXPECT_EQ(recorded_as("checkpoint"),
            Lines{R"({"event":"checkpoint","process":"learner.0","path":"/a/7","step":7})"});
  EXPECT_EQ(saved_sentence(outcome, plan),
            "the newest complete checkpoint is /a/7 (step 7); the step after it is not saved");
  EXPECT_EQ(to_json(outcome)["checkpoint"], (Json{{"path", "/a/7"}, {"step", 7}, {"last_step", 8}}));
}

TEST_F(Saving, WhatDecidesMeanwhileEndsTheRunThatWasToStop) {
  const auto outcome = run([&] {
    save(20, false);
    interrupt(SIGINT);
    end(0, 1);
  });
  EXPECT_TRUE(std::holds_alternative<ProcessFailed>(outcome.cause));
  EXPECT_TRUE(outcome.stop_asked);
}

}  // namespace
}  // namespace nlaunch::supervise
