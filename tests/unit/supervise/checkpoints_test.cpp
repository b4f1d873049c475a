#include "supervise/checkpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "plan/checkpoint.h"
#include "supervise/events.h"
#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
 protected:
  void use(std::string_view format) {
    for (const auto& known : plan::checkpoint_formats()) {
      if (known.name != format) continue;
      how.folder = known.folder;
      how.complete = known.complete;
      how.tracker = known.tracker;
      how.partial = known.partial;
    }
    how.dir = dir.string();
  }
  void folder(const std::string& name, const std::string& file = "") {
    fs::create_directories((dir / name / file).parent_path());
    fs::create_directories(dir / name);
    if (!file.empty()) std::ofstream(dir / name / file) << "{}";
  }
  void track(const std::string& step) { std::ofstream(dir / "latest_checkpointed_iteration.txt") << step; }
  /// "step_40 at 40, step_50 is being written"
  [[nodiscard]] std::string seen(const CheckpointFolder& at) const {
    const auto newest = at.newest();
    const auto flight = at.in_flight();
    auto text = newest ? fmt::format("{} at {}", fs::path(newest->path).filename().string(), *newest->step)
                       : std::string("none");
    return flight.empty() ? text : text + ", " + flight + " is being written";
  }
  [[nodiscard]] std::string seen() const { return seen(CheckpointFolder(how, run)); }

  Folder made;
  fs::path run = made.path();
  fs::path dir = run / "checkpoints";
  plan::Checkpoint how;
};

TEST_F(Checkpoints, WithoutAFolderThereAreNone) {
  use("transformers");
  EXPECT_EQ(seen(), "none");
}

TEST_F(Checkpoints, OneWithItsFileIsComplete) {
  use("transformers");
  const CheckpointFolder at(how, run);
  folder("checkpoint-9", "trainer_state.json");
  folder("checkpoint-10", "trainer_state.json");
  folder("runs");
  folder("checkpoint-11x", "trainer_state.json");
  std::ofstream(dir / "checkpoint-99") << "a file";
  EXPECT_EQ(seen(at), "checkpoint-10 at 10");
  folder("checkpoint-20", "model.safetensors");
  EXPECT_EQ(seen(at), "checkpoint-10 at 10, checkpoint-20 is being written");
  folder("checkpoint-20", "trainer_state.json");
  EXPECT_EQ(seen(at), "checkpoint-20 at 20");
  EXPECT_EQ(at.newest()->path, (dir / "checkpoint-20").string());
}

TEST_F(Checkpoints, AnOldOneThatIsRemovedIsNotBeingWritten) {
  use("torchtitan");
  const CheckpointFolder at(how, run);
  folder("step-20", ".metadata");
  folder("step-10", "shard");
  EXPECT_EQ(seen(at), "step-20 at 20");
}

TEST_F(Checkpoints, TheTrackerSaysWhichIsComplete) {
  for (const auto* format : {"verl", "megatron"}) {
    fs::remove_all(dir);
    use(format);
    const auto name = [&](int step) {
      return how.folder.starts_with("iter") ? fmt::format("iter_{:07}", step)
                                            : fmt::format("global_step_{}", step);
    };
    const CheckpointFolder at(how, run);
    folder(name(10));
    EXPECT_EQ(seen(at), fmt::format("none, {} is being written", name(10))) << format;
    track("10\n");
    EXPECT_EQ(seen(at), fmt::format("{} at 10", name(10)));
    folder(name(20));
    EXPECT_EQ(seen(at), fmt::format("{} at 10, {} is being written", name(10), name(20)));
    track("release");  // of Megatron, which says no step
    EXPECT_FALSE(at.newest());
  }
}

TEST_F(Checkpoints, OneThatGetsItsNameAtTheEndIsCompleteThen) {
  use("nemo-rl");
  const CheckpointFolder at(how, run);
  folder("step_5");
  EXPECT_EQ(seen(at), "step_5 at 5");
  folder("tmp_step_6");
  EXPECT_EQ(seen(at), "step_5 at 5, tmp_step_6 is being written");
  fs::rename(dir / "tmp_step_6", dir / "step_6");
  EXPECT_EQ(seen(at), "step_6 at 6");
}

TEST_F(Checkpoints, WhatARunThatWasCutOffHasLeftIsNotWaitedForUnlessItIsWrittenAgain) {
  use("prime-rl");
  folder("step_40", "trainer/.metadata");
  folder("step_50", "trainer/shard");
  const CheckpointFolder at(how, run);
  EXPECT_EQ(seen(at), "step_40 at 40");
  fs::last_write_time(dir / "step_50", fs::last_write_time(dir / "step_50") + std::chrono::seconds(1));
  EXPECT_EQ(seen(at), "step_40 at 40, step_50 is being written");
}

TEST_F(Checkpoints, TheFolderMayBeInTheRuns) {
  use("nemo-rl");
  how.dir = "${run.dir}/checkpoints";
  folder("step_5");
  EXPECT_EQ(seen(), "step_5 at 5");
}

TEST_F(Checkpoints, AnAttemptBeginsWithTheNewest) {
  plan::Plan plan;
  EXPECT_FALSE(checkpoint_to_resume(plan, run));
  use("nemo-rl");
  plan.checkpoint = how;
  EXPECT_FALSE(checkpoint_to_resume(plan, run));
  folder("step_5");
  EXPECT_EQ(checkpoint_to_resume(plan, run)->path, (dir / "step_5").string());
}

TEST_F(Checkpoints, WithoutAFolderItIsTheLastThatTheOutputNamedAndThatIsThere) {
  plan::Plan plan;
  plan.checkpoint.emplace().saved = R"(saved (\S+))";
  EXPECT_FALSE(checkpoint_to_resume(plan, run));
  folder("a");
  folder("b");
  {
    EventLog events(run / "events.jsonl", nullptr);
    events.write("checkpoint", {{"process", "learner.0"}, {"path", (dir / "a").string()}, {"step", 3}});
    events.write("checkpoint", {{"process", "learner.0"}, {"path", (dir / "b").string()}});
    events.write("checkpoint", {{"process", "learner.0"}, {"path", (dir / "gone").string()}});
  }
  const auto last = checkpoint_to_resume(plan, run);
  EXPECT_EQ(last->path, (dir / "b").string());
  EXPECT_FALSE(last->step);
  fs::remove(dir / "b");
  EXPECT_EQ(checkpoint_to_resume(plan, run)->step, 3U);
}

}  // namespace
}  // namespace nlaunch::supervise
