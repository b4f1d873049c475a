#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(MonitorOff, LeavesAHangToTheTimeLimit) {
  EXPECT_EQ(
      found("monitor-off", scene({set("TORCH_NCCL_ENABLE_MONITORING", "0")})),
      Texts{
          "warning a.env:1:1 TORCH_NCCL_ENABLE_MONITORING=0 turns off the monitor that ends a process whose "
          "watchdog hangs"});
  EXPECT_EQ(found("monitor-off", scene({set("TORCH_NCCL_ENABLE_MONITORING", "1")})), Texts{});
}

TEST(BlockingWait, YesTakesTheWatchdogAway) {
  for (const std::string name : {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}) {
    for (const std::string yes : {"1", "true", "True", "yes", "y", "t"}) {
      EXPECT_EQ(found("blocking-wait", scene({set(name, yes)})),
                Texts{"error a.env:1:1 " + name + "=" + yes + " disables PyTorch's watchdog"});
    }
    for (const std::string no : {"0", "false", "no", "n", "f", "2", ""}) {
      EXPECT_EQ(found("blocking-wait", scene({set(name, no)})), Texts{}) << no;
    }
  }
}

TEST(RecorderPath, ARecorderNeedsAFile) {
  for (const std::string name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
    const Texts told{"warning a.env:1:1 " + name +
                     " turns the flight recorder on, but nothing sets where it writes"};
    EXPECT_EQ(found("recorder-path", scene({set(name, "2000")})), told);
    EXPECT_EQ(found("recorder-path", scene({open(name)})), told);
    EXPECT_EQ(found("recorder-path", scene({set(name, "0")})), Texts{});
    EXPECT_EQ(found("recorder-path", scene({unset(name)})), Texts{});
    EXPECT_EQ(found("recorder-path", scene({local(set(name, "2000"))})), Texts{});
    for (const std::string file : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
      EXPECT_EQ(found("recorder-path", scene({set(name, "2000"), set(file, "/x")})), Texts{});
      EXPECT_EQ(found("recorder-path", scene({set(name, "2000"), maybe(set(file, "/x"))})), Texts{});
      EXPECT_EQ(found("recorder-path", scene({set(name, "2000"), set(file, "/x"), unset(file)})), told);
    }
  }
  EXPECT_EQ(found("recorder-path", scene({set("NCCL_DEBUG", "WARN")})), Texts{});
}

TEST(RecorderPath, BothNamesAreOneRecorder) {
  EXPECT_EQ(
      found("recorder-path",
            scene({set("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"), set("TORCH_FR_BUFFER_SIZE", "2000")})),
      Texts{"warning a.env:2:1 TORCH_FR_BUFFER_SIZE turns the flight recorder on, but nothing sets where "
            "it writes"});
  EXPECT_EQ(found("recorder-path",
                  scene({set("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"), set("TORCH_FR_BUFFER_SIZE", "0")}))
                .size(),
            1U);
}

TEST(RecorderEntries, AMillionIsTooMany) {
  for (const std::string name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
    EXPECT_EQ(found("recorder-entries", scene({set(name, "1000000")})),
              Texts{"warning a.env:1:1 " + name + "=1000000 counts entries, not bytes"});
    EXPECT_EQ(found("recorder-entries", scene({set(name, "999999")})), Texts{});
    EXPECT_EQ(found("recorder-entries", scene({set(name, "2000000x")})), Texts{});
  }
  EXPECT_EQ(whole("recorder-entries", scene({set("TORCH_FR_BUFFER_SIZE", "67108864")})).at(2),
            "TORCH_FR_BUFFER_SIZE=2000");
}

TEST(NosetDevices, NoIsYesForOlderRay) {
  const std::string name = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES";
  const auto with = [&](const std::string& value, const std::string& release) {
    auto input = scene({set(name, value)});
    if (!release.empty()) input.environments[0].releases["Ray"] = version(release);
    return found("noset-devices", input);
  };
  for (const std::string no : {"0", "false", "no", "off", "False"}) {
    const Texts told{"error a.env:1:1 " + name + "=" + no + " means true before Ray 2.54"};
    EXPECT_EQ(with(no, ""), told);
    EXPECT_EQ(with(no, "2.53.9"), told);
    EXPECT_EQ(with(no, "2.54.0"), Texts{});
    EXPECT_EQ(with(no, "3.0"), Texts{});
  }
  EXPECT_EQ(with("1", ""), Texts{});
  EXPECT_EQ(with("", ""), Texts{});
}

TEST(LaunchBlocking, LeftOn) {
  EXPECT_EQ(found("launch-blocking", scene({set("CUDA_LAUNCH_BLOCKING", "1"), set("HIP_LAUNCH_BLOCKING", "0"),
                                            set("AMD_SERIALIZE_KERNEL", "3")})),
            (Texts{"warning a.env:1:1 CUDA_LAUNCH_BLOCKING=1 waits for every kernel to finish",
                   "warning a.env:3:1 AMD_SERIALIZE_KERNEL=3 waits for every kernel to finish"}));
}

TEST(DistributedDebug, DetailLeftOn) {
  EXPECT_EQ(found("distributed-debug", scene({set("TORCH_DISTRIBUTED_DEBUG", "DETAIL")})),
            Texts{"warning a.env:1:1 TORCH_DISTRIBUTED_DEBUG=DETAIL checks every collective of every rank"});
  EXPECT_EQ(found("distributed-debug", scene({set("TORCH_DISTRIBUTED_DEBUG", "INFO")})), Texts{});
}

TEST(ErrorsIgnored, AnErrorThatEndsNothing) {
  EXPECT_EQ(found("errors-ignored", scene({set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")})),
            Texts{"warning a.env:1:1 TORCH_NCCL_ASYNC_ERROR_HANDLING=0: a collective that fails or times out "
                  "does not abort the process"});
  EXPECT_EQ(found("errors-ignored", scene({set("NCCL_ASYNC_ERROR_HANDLING", "0")})).size(), 1U);
  EXPECT_EQ(found("errors-ignored", scene({set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")})), Texts{});
}

TEST(OldLauncher, PassesTheLocalRankInAnArgument) {
  EXPECT_EQ(whole("old-launcher", script("python -m torch.distributed.launch --nproc_per_node=2 a.py\n")),
            (Texts{"torch.distributed.launch is deprecated: torchrun takes the same options",
                   "it adds --local-rank=N to the arguments of the program; before PyTorch 2.0 that was "
                   "--local_rank, so what reads one of the two fails with the other",
                   "torchrun, and LOCAL_RANK in the program", "torch/distributed/launch.py"}));
  EXPECT_EQ(whole("old-launcher", script("python -m torch.distributed.launch --use_env a.py\n")),
            (Texts{"torch.distributed.launch is deprecated: torchrun takes the same options",
                   "a later release of PyTorch may not have it", "torchrun, without --use_env",
                   "torch/distributed/launch.py"}));
  EXPECT_EQ(found("old-launcher", script("torchrun a.py\npython -m torch.distributed.run a.py\n")), Texts{});
}

TEST(LocalWorldSize, OfAllNodes) {
  const std::string job = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4\n";
  EXPECT_EQ(
      whole("local-world-size", script(job + "export LOCAL_WORLD_SIZE=$SLURM_NTASKS\nsrun python a.py\n")),
      (Texts{"LOCAL_WORLD_SIZE is 8, but a node has 4 tasks",
             "it is the number of processes of one node: libraries that divide ranks by it take several "
             "nodes for one",
             "LOCAL_WORLD_SIZE=$SLURM_NTASKS_PER_NODE", "torchrun documentation, Environment Variables"}));
  EXPECT_EQ(found("local-world-size", script(job + "export LOCAL_WORLD_SIZE=4\nsrun python a.py\n")),
            Texts{});
}

}  // namespace
}  // namespace nlaunch::lint
