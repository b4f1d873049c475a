#include "supervise/progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/trackers.h"

namespace nlaunch::supervise {
namespace {

struct Read {
  explicit Read(const std::string& text) : pattern(text) {}
  ProgressPattern pattern;
  ProgressReader reader{pattern, true};

  std::optional<std::uint64_t> step(std::string_view bytes) {
    reader.feed(bytes);
    const auto said = reader.take();
    return said ? said->step : std::nullopt;
  }
};

TEST(ProgressReader, TellsTheNewestStep) {
  Read read(R"(step (\d+))");
  EXPECT_EQ(read.step("loading\nstep 1 loss 2.3\nstep 2 loss 2.2\n"), 2U);
  EXPECT_EQ(read.step(""), std::nullopt);
  EXPECT_EQ(read.step("st"), std::nullopt);
  EXPECT_EQ(read.step("ep 3\nother\n"), 3U);
}

TEST(ProgressReader, ReadsTheSecondsOfAStep) {
  const ProgressPattern pattern(R"(step (\d+) took ([\d.]+)s)");
  ProgressReader reader(pattern, true);
  reader.feed("step 7 took 12.5s\n");
  const auto said = reader.take();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->step, 7U);
  EXPECT_EQ(said->seconds, 12.5);
}

TEST(ProgressReader, SecondsWithoutAnEndAreNone) {
  const ProgressPattern pattern(R"(step (\d+) took (\S+) s)");
  ProgressReader reader(pattern, true);
  for (const auto* seconds : {"inf", "infinity", "nan", "1e999"}) {
    reader.feed(fmt::format("step 7 took {} s\n", seconds));
    const auto said = reader.take();
    ASSERT_TRUE(said);
    EXPECT_EQ(said->step, 7U);
    EXPECT_FALSE(said->seconds) << seconds;
  }
}

TEST(ProgressReader, WhatIsNotANumberAsAWholeIsNone) {
  Read read(R"(step (\S+))");
  for (const auto* step : {"12a", "1.5", "-1", "+1", "99999999999999999999999", "seven"}) {
    read.reader.feed(fmt::format("step {}\n", step));
    const auto said = read.reader.take();
    ASSERT_TRUE(said) << step;
    EXPECT_FALSE(said->step) << step;
  }
  EXPECT_EQ(read.step("step 18446744073709551615\n"), 18446744073709551615U);
  EXPECT_EQ(read.step("step 0\n"), 0U);
}

TEST(ProgressReader, ReadsAProgressBar) {
  Read read(R"(step (\d+)/)");
  EXPECT_EQ(read.step("\rstep 1/9 [#   ]\rstep 2/9 [##  ]\r"), 2U);
  EXPECT_EQ(read.step("step 3/9"), std::nullopt);
  EXPECT_EQ(read.step(" [### ]\r"), 3U);
}

TEST(ProgressReader, WithoutAPatternAnyLineCounts) {
  const ProgressPattern pattern("");
  ProgressReader reader(pattern, true);
  EXPECT_FALSE(reader.take());
  reader.feed("anything\n");
  const auto said = reader.take();
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->step);
}

TEST(ProgressReader, AStepThatIsNoNumberIsProgressAllTheSame) {
  Read read(R"(step (\S+))");
  read.reader.feed("step seven\n");
  const auto said = read.reader.take();
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->step);
}

TEST(ProgressReader, RemarksAreFoundInEveryProcess) {
  const ProgressPattern pattern("");
  ProgressReader reader(pattern, false);
  reader.feed(
      "[rank1]:[W ProcessGroupNCCL.cpp:4843] [PG ID 0 PG GUID 0 Rank 1]  using GPU 1 as device used by this "
      "process is currently unknown. This can potentially cause a hang\n");
  reader.feed(
      "using GPU 0 to perform barrier as devices used by this process are currently unknown. This can "
      "potentially cause a hang\n");
  EXPECT_FALSE(reader.take());
  EXPECT_EQ(reader.take_remarks().size(), 2U);
}

TEST(ProgressReader, RemarksAreToldOnceAndByTheirIndex) {
  const ProgressPattern pattern(R"(step (\d+))");
  ProgressReader reader(pattern, true);
  reader.feed("[rank0]: Guessing device ID based on global rank. This can cause a hang\nstep 3\n");
  EXPECT_EQ(reader.take()->step, 3U);
  const auto found = reader.take_remarks();
  ASSERT_EQ(found, std::vector<std::size_t>{1});
  EXPECT_EQ(remarks().at(found[0]).phrase, "Guessing device ID based on global rank");
  EXPECT_TRUE(reader.take_remarks().empty());
  reader.feed("devices used by this process are currently unknown. This can potentially cause a hang");
  EXPECT_TRUE(reader.take_remarks().empty()) << "the line goes on";
  reader.finish();
  EXPECT_EQ(reader.take_remarks(), std::vector<std::size_t>{0});
}

TEST(ProgressReader, FindsTheSameHoweverTheOutputIsCut) {
  const ProgressPattern any("");
  const std::string remark = "Guessing device ID based on global rank";
  const std::string page = "wandb: View run at https://wandb.ai/team/grpo/runs/abc123";
  std::mt19937 random(1);
  for (const auto* end : {"\n", "\r"}) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += i % 20 == 7 ? "x " + remark : i == 31 ? page : fmt::format("line {}", i);
      text += end;
    }
    for (int round = 0; round < 200; ++round) {
      ProgressReader reader(any, round % 2 == 0);
      for (std::size_t at = 0; at < text.size();) {
        const auto size = std::uniform_int_distribution<std::size_t>(1, text.size())(random);
        reader.feed(std::string_view(text).substr(at, size));
        at += size;
      }
      ASSERT_EQ(reader.take_remarks(), (std::vector<std::size_t>{1, 1, 1})) << round;
      const auto links = reader.take_links();
      ASSERT_EQ(links.size(), 1U) << round;
      ASSERT_EQ(links[0].url, "https://wandb.ai/team/grpo/runs/abc123");
      ASSERT_EQ(reader.take().has_value(), round % 2 == 0);
    }
  }
}

TEST(ProgressReader, ABarOfAProcessThatHasEndedCounts) {
  ProgressPattern bar(plan::progress_pattern("tqdm"));
  ProgressReader reader(bar, true);
  reader.feed("\r  5%|#   | 2/40 [00:00<?, ?it/s]\r  8%|#   | 3/40 [00:01<?, ?it/s]");
  EXPECT_EQ(reader.take()->step, 2U);
  reader.finish();
  const auto last = reader.take();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 3U);
  EXPECT_EQ(last->total, 40U);
  reader.finish();
  EXPECT_FALSE(reader.take());
}

// Lines of the programs themselves: Ray and torchrun put something in front, and loggers colours.
TEST(Trackers, FindTheStepsInTheOutputOfTheirPrograms) {
  struct Case {
    const char* tracker;
    const char* line;
    std::optional<std::uint64_t> step, total;
    std::optional<double> seconds{};
  };
  const Case cases[] = {
      {"trl", " 12%|█▎        | 5/40 [00:09<00:49,  1.43s/it]", 5, 40},
      {"trl",
       "  8%|▊         | 3/40 [00:07<01:13,  1.99s/it]                              {'loss': '0.02863', 'g",
       3, 40},
      {"trl", "100%|██████████| 40/40 [00:37<00:00,  1.07it/s]", 40, 40},
      {"trl", "  0%|          | 0/2000 [00:00<?, ?it/s]", 0, 2000},
      {"trl", "Loading weights: 100%|██████████| 51/51 [00:00<00:00, 6014.27it/s]", {}, {}},
      {"tqdm", "Map: 100%|██████████| 7473/7473 [00:01<00:00, 5890.11 examples/s]", {}, {}},
      {"tqdm", " 50%|█████     | 2/4 [00:01<00:01,  1.00it/s, loss=0.5]", 2, 4},
      {"verl", "step:12 - global_seqlen/min:1.000 - actor/entropy:0.412 - timing_s/gen:9.100", 12, {}},
      {"verl",
       "\x1b[36m(TaskRunner pid=4711)\x1b[0m step:3 - actor/lr:0.000 - timing_s/step:41.250 - "
       "training/epoch:0.000",
       3,
       {},
       41.25},
      {"verl", "(TaskRunner pid=7) Training Progress:  10%|█         | 1/10 [00:41<06:11, 41.3s/it]", {}, {}},
      {"verl", "timing_s/step:35 - x:1", {}, {}},
      {"openrlhf",
       "(PPOTrainer pid=99) INFO 06-01 10:00:00 ppo_trainer.py:300] ✨ Global step 7: {'reward': 0.5}",
       7,
       {}},
      {"openrlhf", "Episode [1/20]:  10%|█         | 2/20 [00:10<01:30,  5.00s/it]", {}, {}},
      {"prime-rl",
       "\x1b[2m12:00:01\x1b[0m\x1b[32m\x1b[1m SUCCESS\x1b[0m \x1b[32m\x1b[1m\x1b[22mStep 4 | Time: 12.34s | "
       "Reward: "
       "0.5000 | Seq. Length: 512.0 tokens/sample\x1b[0m",
       4,
       {}},
      {"prime-rl", "12:00:01 SUCCESS Step 20 |   8.12s | Loss 0.0123 | Grad. Norm 0.4000", 20, {}},
      {"prime-rl", "12:00:01   DEBUG Micro Step 0/4 | Loss 0.0123 | Entropy 0.5000", {}, {}},
      {"megatron",
       " [2025-08-01 07:19:37] iteration        1/    5000 | consumed samples:          128 | elapsed time "
       "per "
       "iteration (ms): 19138.8 | learning rate: 6.976744E-08 |",
       1, 5000},
      {"megatron", " iteration       10/    1000 | consumed samples:          640 |", 10, 1000},
      {"megatron",
       " validation loss at iteration 100 | lm loss value: 1.0E+00 | lm loss PPL: 2.7E+00 |",
       {},
       {}},
      {"torchtitan",
       "[rank0]:[titan] 2025-06-16 22:30:50,322 - root - INFO - step: 200  loss:  6.1384  memory: "
       "49.66GiB(52.28%)  "
       "tps: 5,856",
       200,
       {}},
      {"torchtitan",
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - \x1b[31mstep:  4  \x1b[32mloss:  7.62585",
       4,
       {}},
      {"torchtitan",
       "[titan] 2026-02-24 19:46:17,508 - root - INFO - \x1b[33mvalidate step:  4  \x1b[32mloss:  7.6",
       {},
       {}},
  };
  for (const auto& [tracker, line, step, total, seconds] : cases) {
    const auto found = ProgressPattern(plan::progress_pattern(tracker)).match(line);
    ASSERT_EQ(found.has_value(), step.has_value()) << tracker << ": " << line;
    if (!found) continue;
    EXPECT_EQ(found->step, step) << line;
    EXPECT_EQ(found->total, total) << line;
    EXPECT_EQ(found->seconds, seconds) << line;
  }
}

TEST(ProgressPattern, WithoutAGroupALineThatFitsIsProgress) {
  const ProgressPattern pattern("epoch done");
  EXPECT_FALSE(pattern.match("epoch begun"));
  const auto found = pattern.match("one more epoch done");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->step || found->seconds || found->total);
  const auto one = ProgressPattern(R"(epoch (\d+))").match("epoch 7 took 3 s");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->step, 7U);
  EXPECT_FALSE(one->seconds || one->total);
  const auto any = ProgressPattern("").match("");
  ASSERT_TRUE(any);
  EXPECT_FALSE(any->step || any->seconds || any->total);
}

TEST(ProgressPattern, WithNamesNothingIsTakenByItsPlaceButTheStep) {
  const auto seconds = ProgressPattern(R"((\d+): (\d+) (?P<seconds>[\d.]+))").match("1: 2 3.5");
  ASSERT_TRUE(seconds);
  EXPECT_EQ(seconds->step, 1U);
  EXPECT_EQ(seconds->seconds, 3.5);
  EXPECT_FALSE(seconds->total);
  const auto three = ProgressPattern(R"((\d+) (\d+) (\d+))").match("4 5 6");
  ASSERT_TRUE(three);
  EXPECT_EQ(three->step, 4U);
  EXPECT_EQ(three->seconds, 5);
  EXPECT_FALSE(three->total);
  const auto last = ProgressPattern(R"((\d+) (\d+) (?P<step>\d+))").match("4 5 6");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 6U);
  EXPECT_FALSE(last->seconds || last->total);
}

TEST(ProgressPattern, GroupsMayHaveNames) {
  const auto match = [](const char* pattern, const char* line) {
    return ProgressPattern(pattern).match(line);
  };
  const auto all =
      match(R"(took (?P<seconds>[\d.]+)s: (?P<step>\d+) of (?P<total>\d+))", "took 1.5s: 3 of 40");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->step, 3U);
  EXPECT_EQ(all->total, 40U);
  EXPECT_EQ(all->seconds, 1.5);
  // Without these names the first is the step, and the second its seconds.
  const auto by_place = match(R"(step (\d+)/\d+ took ([\d.]+)s)", "step 3/40 took 2s");
  ASSERT_TRUE(by_place);
  EXPECT_EQ(by_place->step, 3U);
  EXPECT_EQ(by_place->seconds, 2);
  EXPECT_FALSE(by_place->total);
  const auto total = match(R"(step (\d+)/(?P<total>\d+))", "step 3/40");
  ASSERT_TRUE(total);
  EXPECT_EQ(total->step, 3U);
  EXPECT_EQ(total->total, 40U);
  EXPECT_FALSE(total->seconds);
}

TEST(ProgressReader, ReadsTheCheckpointsThatItsLinesName) {
  const ProgressPattern pattern("step");
  const RE2 saved(R"(saved checkpoint (\S+))");
  ProgressReader reader(pattern, false, &saved);
  reader.feed("step 1\nsaved checkpoint /a/1 in 3 s\nsaved check");
  reader.feed("point /a/2\nsaved nothing\n");
  EXPECT_EQ(reader.take_saved(), (std::vector<std::string>{"/a/1", "/a/2"}));
  EXPECT_TRUE(reader.take_saved().empty());
  EXPECT_FALSE(reader.take());
}

TEST(ProgressReader, ReadsThePagesOfTrackersOnce) {
  const ProgressPattern pattern("step");
  ProgressReader reader(pattern, false);
  reader.feed(
      "wandb: View run at https://wandb.ai/a/b/runs/c\nwandb: View run x at: https://wandb.ai/a/b/ru");
  reader.feed("ns/c\nTensorBoard 2.20.0 at http://localhost:6006/ (Press CTRL+C to quit)\n");
  const auto links = reader.take_links();
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].str(), "wandb: https://wandb.ai/a/b/runs/c");
  EXPECT_EQ(links[1].str(), "tensorboard: http://localhost:6006/");
  EXPECT_TRUE(reader.take_links().empty());
  for (int i = 0; i < 40; ++i) reader.feed(fmt::format("wandb: View run at https://h/a/b/runs/{}\n", i));
  EXPECT_EQ(reader.take_links().size(), kMostLinks);
}

}  // namespace
}  // namespace nlaunch::supervise
