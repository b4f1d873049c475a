#include "sys/proc.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

TEST(InForeground, IsAProcessThatHasTheTerminalAndIsNotStopped) {
  const ProcessInfo job{.state = 'S', .name = "nlaunch", .group = 7, .foreground = 7};
  EXPECT_TRUE(in_foreground(job));
  auto other = job;
  other.foreground = 8;
  EXPECT_FALSE(in_foreground(other));
  other.foreground = -1;
  EXPECT_TRUE(in_foreground(other)) << "no shell controls it";
  auto stopped = job;
  stopped.state = 'T';
  EXPECT_FALSE(in_foreground(stopped));
}

TEST(ProcessInfo, HasTheForegroundOfTheTerminal) {
  const auto own = process_info(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->group, ::getpgrp());
  const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(own->foreground, terminal ? ::tcgetpgrp(terminal.get()) : -1);
}

TEST(ProcessTitle, IsWhatAPersonCallsTheProcess) {
  const auto title = [](std::vector<std::string> arguments) { return process_title(arguments, "comm"); };
  EXPECT_EQ(title({"VLLM::EngineCore"}), "VLLM::EngineCore");
  EXPECT_EQ(title({"ray::WorkerDict.actor_rollout_update_actor"}),
            "ray::WorkerDict.actor_rollout_update_actor");
  EXPECT_EQ(title({"sglang::scheduler_TP0 "}), "sglang::scheduler_TP0");
  EXPECT_EQ(title({"/venv/lib/ray/core/src/ray/raylet/raylet", "--raylet_socket_name=/tmp/ray"}), "raylet");
  EXPECT_EQ(title({"/venv/bin/python3.11", "/venv/bin/vllm", "serve", "model"}), "vLLM API server");
  EXPECT_EQ(title({"vllm", "serve", "model"}), "vLLM API server");
  EXPECT_EQ(title({"vllm", "bench"}), "vllm");
  EXPECT_EQ(title({"python", "-m", "vllm.entrypoints.openai.api_server"}), "vLLM API server");
  EXPECT_EQ(title({"python", "-u", "train.py", "--steps", "4"}), "train.py");
  EXPECT_EQ(title({"python3", "-m", "torch.distributed.run"}), "python3 -m torch.distributed.run");
  EXPECT_EQ(title({"python3", "-c", "print()"}), "python3 -c");
  EXPECT_EQ(title({"bash", "/home/me/start.sh"}), "start.sh");
  EXPECT_EQ(title({}), "comm") << "a kernel thread or a zombie";
}

TEST(ProcessTitle, TellsKindsOfProcessesApart) {
  for (const auto* title : {"VLLM::Worker_TP0", "ray::IDLE", "raylet", "gcs_server", "vLLM API server"})
    EXPECT_TRUE(is_telling_title(title)) << title;
  for (const auto* title : {"train.py", "python3 -c", "bash"}) EXPECT_FALSE(is_telling_title(title)) << title;
}

}  // namespace
}  // namespace nlaunch::sys
