#include "report/run_prometheus.h"

#include <gtest/gtest.h>

namespace nlaunch::report {
namespace {

using record::Phase;
using State = record::ProcessSpan::State;

TopView with_a_restart() {
  TopView view{.name = "grpo",
               .run = "20260131-120000-7",
               .site = "isambard",
               .state = "running",
               .alive = true,
               .attempt = 1};
  view.timeline.seconds = 100;
  view.timeline.phases = {{Phase::queue, {0, 10}},       {Phase::preflight, {10, 12.5}},
                          {Phase::loading, {12.5, 30}},  {Phase::first_step, {30, 40}},
                          {Phase::productive, {40, 70}}, {Phase::lost, {70, 80}},
                          {Phase::restart, {80, 90}},    {Phase::productive, {90, 100}}};
  view.timeline.steps = {{.at = 45, .step = 1, .number = 1, .seconds = 5, .first = true},
                         {.at = 50, .step = 3, .number = 3, .seconds = 2.5},
                         {.at = 55, .step = 4, .number = 4, .seconds = 1, .lost = true},
                         {.at = 95, .step = 4, .number = 4, .seconds = 1.25, .attempt = 1}};
  view.timeline.processes = {
      {"engine.0", "nid001", {{State::starting, {12.5, 20}}, {State::up, {20, 100}}}},
      {"engine.1", "nid001", {{State::up, {20, 80}, "exited with code 1"}, {State::starting, {90, 100}}}},
      {"learner.0", "nid002", {{State::up, {30, 80}, "was killed by SIGKILL"}, {State::up, {90, 100}}}}};
  view.step_times = {.count = 3, .median = 1.25, .p90 = 2.5, .longest = 2.5};
  view.metrics = {{"empty", {}}, {"kl", {0.5, -0.25}}, {"reward", {0.1, 0.3}}};
  view.walltime_left = 3600;
  view.processes = {
      {.name = "engine.0", .node = "nid001", .gpus = "0", .state = "ready", .alive = true},
      {.name = "engine.1", .node = "nid001", .gpus = "1", .state = "starting", .alive = true},
      {.name = "learner.0", .node = "nid002", .gpus = "0", .state = "running", .alive = true, .step = 4},
      {.name = "reward.0", .state = "not started"}};
  return view;
}

const std::vector<GpuSample> kGpus{
    {.host = "nid001",
     .number = 0,
     .uuid = "GPU-1",
     .bus_id = "00000000:3B:00.0",
     .processes = {"engine.0", "learner.0"},
     .busy = 93,
     .power = 512.5,
     .memory_used = 71. * (1U << 30),
     .memory_total = 80. * (1U << 30)},
    {.host = "nid001", .number = 1, .bus_id = "00000000:5E:00.0", .processes = {"engine.1"}, .busy = 0}};

TEST(RunPrometheus, HasAllFiguresOfARun) {
  EXPECT_EQ(run_prometheus(with_a_restart(), kGpus), R"(# HELP nlaunch_run_info The run, always 1.
# TYPE nlaunch_run_info gauge
nlaunch_run_info{run="20260131-120000-7",name="grpo",site="isambard"} 1
# HELP nlaunch_run_up 1 while the run goes on, 0 once it has ended.
# TYPE nlaunch_run_up gauge
nlaunch_run_up{run="20260131-120000-7"} 1
# HELP nlaunch_run_state 1 for the state of the run: running, or its outcome.
# TYPE nlaunch_run_state gauge
nlaunch_run_state{run="20260131-120000-7",state="running"} 1
# HELP nlaunch_run_attempt Number of the attempt, counted from 0.
# TYPE nlaunch_run_attempt gauge
nlaunch_run_attempt{run="20260131-120000-7"} 1
# HELP nlaunch_run_step Newest training step, as the learners count.
# TYPE nlaunch_run_step gauge
nlaunch_run_step{run="20260131-120000-7"} 4
# HELP nlaunch_run_steps_total Training steps that were finished, including repeated ones.
# TYPE nlaunch_run_steps_total counter
nlaunch_run_steps_total{run="20260131-120000-7"} 5
# HELP nlaunch_run_step_seconds Time of a training step: the last one, median and p90.
# TYPE nlaunch_run_step_seconds gauge
nlaunch_run_step_seconds{run="20260131-120000-7",stat="last"} 1.25
nlaunch_run_step_seconds{run="20260131-120000-7",stat="median"} 1.25
nlaunch_run_step_seconds{run="20260131-120000-7",stat="p90"} 2.5
# HELP nlaunch_run_phase_seconds Time of the run in each phase so far.
# TYPE nlaunch_run_phase_seconds gauge
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="queue"} 10
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="preflight"} 2.5
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="loading"} 17.5
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="first step"} 10
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="productive"} 40
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="stalled"} 0
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="lost"} 10
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="restart"} 10
nlaunch_run_phase_seconds{run="20260131-120000-7",phase="shutdown"} 0
# HELP nlaunch_run_ettr_ratio Effective training time ratio: productive time over all time.
# TYPE nlaunch_run_ettr_ratio gauge
nlaunch_run_ettr_ratio{run="20260131-120000-7"} 0.4
# HELP nlaunch_run_walltime_left_seconds Time until the scheduler ends the job.
# TYPE nlaunch_run_walltime_left_seconds gauge
nlaunch_run_walltime_left_seconds{run="20260131-120000-7"} 3600
# HELP nlaunch_run_metric Newest value of each of watch.metrics.
# TYPE nlaunch_run_metric gauge
nlaunch_run_metric{run="20260131-120000-7",metric="kl"} -0.25
nlaunch_run_metric{run="20260131-120000-7",metric="reward"} 0.3
# HELP nlaunch_process_up 1 if the process runs.
# TYPE nlaunch_process_up gauge
nlaunch_process_up{run="20260131-120000-7",process="engine.0",role="engine"} 1
nlaunch_process_up{run="20260131-120000-7",process="engine.1",role="engine"} 1
nlaunch_process_up{run="20260131-120000-7",process="learner.0",role="learner"} 1
nlaunch_process_up{run="20260131-120000-7",process="reward.0",role="reward"} 0
# HELP nlaunch_process_ready 1 if the process runs and is ready.
# TYPE nlaunch_process_ready gauge
nlaunch_process_ready{run="20260131-120000-7",process="engine.0",role="engine"} 1
nlaunch_process_ready{run="20260131-120000-7",process="engine.1",role="engine"} 0
nlaunch_process_ready{run="20260131-120000-7",process="learner.0",role="learner"} 1
nlaunch_process_ready{run="20260131-120000-7",process="reward.0",role="reward"} 0
# HELP nlaunch_process_restarts_total Starts of the process after its first, in all attempts.
# TYPE nlaunch_process_restarts_total counter
nlaunch_process_restarts_total{run="20260131-120000-7",process="engine.0",role="engine"} 0
nlaunch_process_restarts_total{run="20260131-120000-7",process="engine.1",role="engine"} 1
nlaunch_process_restarts_total{run="20260131-120000-7",process="learner.0",role="learner"} 1
nlaunch_process_restarts_total{run="20260131-120000-7",process="reward.0",role="reward"} 0
# HELP nlaunch_process_step Newest training step that the process has reported.
# TYPE nlaunch_process_step gauge
nlaunch_process_step{run="20260131-120000-7",process="learner.0",role="learner"} 4
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7"} 93
DCGM_FI_DEV_GPU_UTIL{gpu="1",pci_bus_id="00000000:5E:00.0",Hostname="nid001",run="20260131-120000-7"} 0
# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7"} 72704
# HELP DCGM_FI_DEV_FB_FREE Framebuffer memory free (in MiB).
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7"} 9216
# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7"} 512.5
# HELP nlaunch_process_gpu_info A GPU that the process uses, always 1.
# TYPE nlaunch_process_gpu_info gauge
nlaunch_process_gpu_info{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7",process="engine.0",role="engine"} 1
nlaunch_process_gpu_info{gpu="0",UUID="GPU-1",pci_bus_id="00000000:3B:00.0",Hostname="nid001",run="20260131-120000-7",process="learner.0",role="learner"} 1
nlaunch_process_gpu_info{gpu="1",pci_bus_id="00000000:5E:00.0",Hostname="nid001",run="20260131-120000-7",process="engine.1",role="engine"} 1
)");
}

TEST(RunPrometheus, LeavesOutWhatIsNotKnown) {
  const TopView view{.name = "a", .run = "7", .site = "local", .state = "not started"};
  EXPECT_EQ(run_prometheus(view, {}), R"(# HELP nlaunch_run_info The run, always 1.
# TYPE nlaunch_run_info gauge
nlaunch_run_info{run="7",name="a",site="local"} 1
# HELP nlaunch_run_up 1 while the run goes on, 0 once it has ended.
# TYPE nlaunch_run_up gauge
nlaunch_run_up{run="7"} 0
# HELP nlaunch_run_state 1 for the state of the run: running, or its outcome.
# TYPE nlaunch_run_state gauge
nlaunch_run_state{run="7",state="not started"} 1
# HELP nlaunch_run_attempt Number of the attempt, counted from 0.
# TYPE nlaunch_run_attempt gauge
nlaunch_run_attempt{run="7"} 0
# HELP nlaunch_run_phase_seconds Time of the run in each phase so far.
# TYPE nlaunch_run_phase_seconds gauge
nlaunch_run_phase_seconds{run="7",phase="queue"} 0
nlaunch_run_phase_seconds{run="7",phase="preflight"} 0
nlaunch_run_phase_seconds{run="7",phase="loading"} 0
nlaunch_run_phase_seconds{run="7",phase="first step"} 0
nlaunch_run_phase_seconds{run="7",phase="productive"} 0
nlaunch_run_phase_seconds{run="7",phase="stalled"} 0
nlaunch_run_phase_seconds{run="7",phase="lost"} 0
nlaunch_run_phase_seconds{run="7",phase="restart"} 0
nlaunch_run_phase_seconds{run="7",phase="shutdown"} 0
)");
}

TEST(RunPrometheus, HasNoSeriesOfSingleProcessesOfALargeRun) {
  auto view = with_a_restart();
  view.processes.clear();
  for (std::size_t i = 0; i <= kMostProcessSeries; ++i) view.processes.push_back({.name = "engine.0"});
  EXPECT_EQ(run_prometheus(view, {}).find("nlaunch_process_"), std::string::npos);
  view.processes.pop_back();
  EXPECT_NE(run_prometheus(view, {}).find("nlaunch_process_up"), std::string::npos);
}

TEST(Exposition, EscapesLabels) {
  Exposition page;
  page.gauge("a", "Help.");
  page.sample(0.1, {{"b", "quote \" backslash \\ newline \n escape \x1b ü"}});
  EXPECT_EQ(page.take(),
            "# HELP a Help.\n# TYPE a gauge\n"
            R"(a{b="quote \" backslash \\ newline \\n escape \\x1b ü"} 0.1)"
            "\n");
}

TEST(Exposition, IsOpenMetricsWhereItIsAskedFor) {
  Exposition page(Exposition::Format::openmetrics);
  page.counter("steps", "Steps.");
  page.sample(3);
  EXPECT_EQ(page.take(), "# HELP steps Steps.\n# TYPE steps counter\nsteps_total 3\n# EOF\n");
  const auto type = [](std::string_view accept) { return content_type(format_for(accept)); };
  EXPECT_EQ(type("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
  for (const auto* accept : {"", "*/*", "text/plain;version=0.0.4"})
    EXPECT_EQ(type(accept), "text/plain; version=0.0.4; charset=utf-8");
}

TEST(ScrapeTargets, AreAListForFileSd) {
  EXPECT_EQ(scrape_targets_json("7", {}), "[]\n");
  EXPECT_EQ(
      scrape_targets_json("7", {{.address = "127.0.0.1:9400"}, {"nid001:8000", "engine.2.0", "engine", "2"}}),
      R"([
  {
    "targets": [
      "127.0.0.1:9400"
    ]
  },
  {
    "targets": [
      "nid001:8000"
    ],
    "labels": {
      "run": "7",
      "role": "engine",
      "process": "engine.2.0",
      "replica": "2"
    }
  }
]
)");
}

}  // namespace
}  // namespace nlaunch::report
