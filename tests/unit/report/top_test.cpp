#include "report/top.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::report {
namespace {

TopView two_engines() {
  TopView view{
      .name = "grpo", .run = "20260131-120000-7", .site = "isambard", .state = "running", .alive = true};
  view.timeline.seconds = 754;
  view.timeline.phases = {{record::Phase::productive, {0, 754}}};
  for (std::uint64_t i = 1; i <= 4; ++i)
    view.timeline.steps.push_back({.at = static_cast<double>(i), .step = i, .seconds = i == 4 ? 2.0 : 1.0});
  view.step_times = {.count = 4, .median = 1, .p90 = 1, .longest = 2};
  view.step_seconds = {1, 1, 1, 2};
  view.metrics["reward"] = {0.1, 0.2, 0.3};
  view.stages = {{"engine", 2, 2}, {"learner", 1, 2}};
  view.processes = {
      {.name = "engine.0",
       .node = "nid001",
       .gpus = "0",
       .state = "ready",
       .alive = true,
       .busy = 93,
       .power = 512,
       .memory_used = 71. * (1U << 30),
       .memory_total = 80. * (1U << 30),
       .last_line = "INFO: 127.0.0.1 - POST /v1/completions 200"},
      {.name = "engine.1", .node = "nid001", .gpus = "1", .state = "exited with code 1", .failed = true},
      {.name = "learner.0", .node = "nid002", .gpus = "0", .state = "running", .alive = true, .step = 4},
      {.name = "learner.1", .node = "nid002", .gpus = "1", .state = "running", .alive = true, .step = 1}};
  return view;
}

std::string text_of(const TopView& view, std::size_t width, std::size_t height = 0) {
  return screen_text(top_screen(view, {}, {width, height}), Paint(false));
}

TEST(Top, OneScreen) {
  EXPECT_EQ(text_of(two_engines(), 120), R"(grpo on isambard · running · up 12m34s · 20260131-120000-7
step 4 · 1 s/step, p90 1 · ▁▁▁█ · ETTR 100 %
reward 0.3 ▁▅█
engine 2/2 · waiting for learner 1/2
process    node    gpu  busy     memory  power  step  state               last line
engine.1   nid001  1                                  exited with code 1
learner.1  nid002  1                               1  running
engine.0   nid001  0    93 %  71/80 GiB  512 W        ready               INFO: 127.0.0.1 - POST /v1/completions 200
learner.0  nid002  0                               4  running
)");
}

TEST(Top, ANarrowOneLeavesOutWhatMattersLeast) {
  EXPECT_EQ(text_of(two_engines(), 60), R"(grpo on isambard · running · up 12m34s · 20260131-120000-7
step 4 · 1 s/step, p90 1 · ▁▁▁█ · ETTR 100 %
reward 0.3 ▁▅█
engine 2/2 · waiting for learner 1/2
process    step  state               last line
engine.1         exited with code 1
learner.1     1  running
engine.0         ready               INFO: 127.0.0.1 - POST…
learner.0     4  running
)");
}

TEST(Top, NothingIsWiderOrHigherThanTheScreen) {
  auto view = two_engines();
  view.processes[0].last_line = std::string(500, 'x') + "\x1b[2J";
  view.timeline.marks = {{3, "no progress for 10 s: " + std::string(200, 'y')}};
  for (const std::size_t width : {20, 40, 80, 120, 200}) {
    for (const std::size_t height : {8, 24, 50}) {
      const auto lines = top_screen(view, {}, {width, height});
      EXPECT_EQ(lines.size(), height);
      for (const auto& line : lines) {
        std::size_t wide = 0;
        for (const auto& piece : line) wide += display_width(piece.text);
        EXPECT_LE(wide, width);
        for (const auto& piece : line) EXPECT_EQ(piece.text.find('\x1b'), std::string::npos);
      }
    }
  }
}

std::string footer_of(const TopView& view, std::size_t width) {
  return screen_text(footer(view, width), Paint(false));
}

TEST(Top, AFooterSaysWhatIsWaitedFor) {
  auto view = two_engines();
  view.stages = {{"engine", 1, 2, 0, 600}, {"learner", 0, 2}};
  view.processes[0].in_state = 130;
  view.processes[0].last_line = "Loading safetensors checkpoint shards:  45%";
  EXPECT_EQ(footer_of(view, 100), R"(grpo on isambard · running · up 12m34s · 20260131-120000-7
waiting for engine.0 on nid001 (1 of 2 ready), 2m10s of 10m00s
engine.0 │ Loading safetensors checkpoint shards:  45%
)");
  EXPECT_EQ(footer_of(view, 40), R"(grpo on isambard · running · up 12m34s
waiting for engine.0 on nid001 (1 of 2…
engine.0 │ Loading safetensors…
)");
  EXPECT_EQ(waiting_text(view),
            "waiting for engine.0 on nid001 (1 of 2 ready), 2m10s of 10m00s; last line: "
            "Loading safetensors checkpoint shards:  45%");
  view.stages[0].timeout = 0;
  view.processes[0].last_line = "";
  EXPECT_EQ(waiting_text(view), "waiting for engine.0 on nid001 (1 of 2 ready), 2m10s");
  view.alive = false;
  EXPECT_EQ(waiting_text(view), "");
}

TEST(Top, AFooterHasStepsAndMetrics) {
  auto view = two_engines();
  view.stages = {{"engine", 2, 2}, {"learner", 2, 2}};
  EXPECT_EQ(waiting_text(view), "");
  EXPECT_EQ(footer_of(view, 100), R"(grpo on isambard · running · up 12m34s · 20260131-120000-7
step 4 · 1 s/step, p90 1 · ▁▁▁█ · ETTR 100 %
reward 0.3 ▁▅█
)");
  view.metrics.clear();
  EXPECT_EQ(text::split(footer_of(view, 100), '\n').at(2), "engine 2/2 · learner 2/2");
  view.timeline.marks = {{3, "no progress for 10 s"}};
  EXPECT_EQ(text::split(footer_of(view, 100), '\n').at(2), "3.0 s  no progress for 10 s");
}

TEST(Top, ThePagesOfTrackersAreInTheHead) {
  auto view = two_engines();
  view.timeline.links = {{"wandb", "https://wandb.ai/acme/grpo/runs/c", "learner.0"}};
  EXPECT_EQ(text::split(text_of(view, 80), '\n').at(1), "wandb https://wandb.ai/acme/grpo/runs/c");
  EXPECT_EQ(text::split(text_of(view, 20), '\n').at(1), "wandb https://wandb…");
  view.timeline.links.push_back({"tensorboard", "http://localhost:6006/", "board.0"});
  EXPECT_EQ(text::split(text_of(view, 76), '\n').at(1),
            "wandb https://wandb.ai/acme/grpo/runs/c · tensorboard http://localhost:6006/");
  EXPECT_EQ(text::split(text_of(view, 75), '\n').at(1), "wandb https://wandb.ai/acme/grpo/runs/c · 1 more");
  view.timeline.links.push_back({"mlflow", "http://h/#/experiments/1/runs/2", "learner.1"});
  EXPECT_EQ(text::split(text_of(view, 90), '\n').at(1),
            "wandb https://wandb.ai/acme/grpo/runs/c · tensorboard http://localhost:6006/ · 1 more");
  EXPECT_EQ(text::split(text_of(view, 80), '\n').at(1), "wandb https://wandb.ai/acme/grpo/runs/c · 2 more");
  for (const std::size_t height : {3, 8, 24}) {
    const auto lines = top_screen(view, {}, {60, height});
    EXPECT_EQ(lines.size(), height);
    for (const auto& line : lines) EXPECT_LE(display_width(screen_text({line}, Paint(false))), 60U + 1);
  }
}

TEST(Top, AFilterLooksAtNamesNodesAndStates) {
  const auto view = two_engines();
  EXPECT_EQ(top_order(view, "nid002"), (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(top_order(view, "exited"), (std::vector<std::size_t>{1}));
  EXPECT_TRUE(top_order(view, "nothing").empty());
}

TEST(Top, TheSelectedRowStaysOnTheScreen) {
  TopView view;
  for (int i = 0; i < 100; ++i) view.processes.push_back({.name = fmt::format("engine.{}", i)});
  const Screen screen{80, 17};  // ten rows
  EXPECT_EQ(top_rows(view, {.selected = 3}, screen).front(), 0);
  EXPECT_EQ(top_rows(view, {.selected = 42}, screen).back(), 42);
  EXPECT_EQ(top_rows(view, {.selected = 1000}, screen).back(), 99);
}

TEST(Top, PathsAreShortenedInTheMiddle) {
  EXPECT_EQ(fitted("/home/alice/project/runs/grpo", 16), "/home…/runs/grpo");
  EXPECT_EQ(fitted("a sentence that is long", 10), "a sentenc…");
  EXPECT_EQ(fitted("short", 5), "short");
  EXPECT_EQ(fitted("short", 0), "");
}

TEST(Top, SparklinesShowTheNewestValues) {
  EXPECT_EQ(sparkline({9, 9, 0, 1, 2}, 3), "▁▅█");
  EXPECT_EQ(sparkline({1, 1}, 5), "▁▁");
  EXPECT_EQ(sparkline({}, 5), "");
  EXPECT_EQ(sparkline({1e308, -1e308}, 2), "▁▁");
}

}  // namespace
}  // namespace nlaunch::report
