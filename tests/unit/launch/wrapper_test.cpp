#include "scope/wrapper.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nlaunch {
namespace {

nlaunch_kind kind_of(const char* executable, std::vector<const char*> argv) {
  argv.push_back(nullptr);
  return nlaunch_kind_of(executable, argv.data());
}

TEST(Wrapper, KnowsShellsAndToolsByExecutableOrName) {
  EXPECT_EQ(kind_of("/usr/bin/bash", {"bash", "train.sh"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("/usr/bin/bash", {"/home/u/.pyenv/shims/python", "train.py"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("/usr/bin/dash", {"-sh"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("/usr/bin/coreutils", {"env", "A=1", "python"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("", {"numactl", "-N", "0", "python"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("/opt/uv", {"uv", "run", "train.py"}), NLAUNCH_WRAPPER);
  EXPECT_EQ(kind_of("/usr/bin/nvidia-smi", {"nvidia-smi"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of("", {}), NLAUNCH_PROGRAM);
}

TEST(Wrapper, KnowsLaunchersByScriptModuleAndFile) {
  const char* python = "/usr/bin/python3.11";
  EXPECT_EQ(kind_of(python, {"python", "/venv/bin/torchrun", "t.py"}), NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "-m", "torch.distributed.run", "t.py"}), NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "-um", "torch.distributed.launch"}), NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "-mtorch.distributed.run"}), NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "-X", "utf8", "-W", "ignore", "/venv/bin/accelerate", "launch"}),
            NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "-u", "-m", "deepspeed.launcher.launch"}), NLAUNCH_LAUNCHER);
  EXPECT_EQ(kind_of(python, {"python", "/v/lib/torch/distributed/run.py", "t.py"}), NLAUNCH_LAUNCHER);
}

TEST(Wrapper, APythonProgramIsOneWhateverItsArgumentsAre) {
  const char* python = "/usr/bin/python3.11";
  EXPECT_EQ(kind_of(python, {"python", "train.py", "-m", "torch.distributed.run"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "-m", "mypackage.train", "torchrun"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "-c", "torchrun"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "perf"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "distributed/run.py"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "mytorch/distributed/run.py"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "-m"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "-"}), NLAUNCH_PROGRAM);
  EXPECT_EQ(kind_of(python, {"python", "/opt/conda/bin/conda", "run", "python", "t.py"}), NLAUNCH_WRAPPER);
}

}  // namespace
}  // namespace nlaunch
