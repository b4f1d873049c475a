#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// What is said of an engine on the learner's GPUs.
Texts of(const std::vector<std::string>& command, std::optional<double> memory = 0.45,
         const std::string& others = "learner") {
  LintInput input;
  input.environments = {environment("engine", {})};
  input.environments[0].kind = RoleKind::engine;
  input.environments[0].command = command;
  input.environments[0].command_span = {a_file("a.yaml"), 4, 2, 1};
  input.environments[0].shares_gpus_with = others;
  input.environments[0].gpu_memory = memory;
  return found("gpu-memory", input);
}

TEST(GpuMemory, AServerThatIsNotToldItsShareTakesMost) {
  const Texts vllm{
      "warning a.yaml:4:2 (engine) vLLM shares its GPUs with learner, but has no limit on the memory it "
      "uses"};
  EXPECT_EQ(of({"vllm", "serve", "m"}), vllm);
  EXPECT_EQ(of({"/venv/bin/python", "-m", "vllm.entrypoints.openai.api_server"}, {}), vllm);
  EXPECT_EQ(of({"bash", "-c", "source x\nexec /opt/bin/vllm serve m"}), vllm);
  EXPECT_EQ(of({"trl", "vllm-serve"}), vllm);
  EXPECT_EQ(of({"python", "-m", "sglang.launch_server"}).size(), 1U);
  EXPECT_EQ(of({"vllm", "serve", "m"}, 0.45, ""), Texts{}) << "alone";
  EXPECT_EQ(of({"python", "server.py"}), Texts{});
  EXPECT_EQ(of({"python", "train.py", "--backend", "vllm"}), Texts{});
}

TEST(GpuMemory, MoreThanTheRolesShareIsTold) {
  EXPECT_EQ(
      of({"vllm", "serve", "--gpu-memory-utilization", "0.8"}),
      Texts{"warning a.yaml:4:2 (engine) --gpu-memory-utilization 0.8, but the role's gpu_memory is 0.45"});
  EXPECT_EQ(of({"trl", "vllm-serve", "--gpu_memory_utilization=0.5"}).size(), 1U);
  EXPECT_EQ(of({"sglang", "serve", "--mem-fraction-static", "0.5"}).size(), 1U);
  for (const auto* fine : {"0.45", "0.2", "${env.SHARE}", "x"})
    EXPECT_EQ(of({"vllm", "serve", "--gpu-memory-utilization", fine}), Texts{}) << fine;
  EXPECT_EQ(of({"vllm", "serve", "--gpu-memory-utilization", "0.8"}, {}), Texts{});
  EXPECT_EQ(of({"vllm", "serve", "--gpu-memory-utilization"}).size(), 1U);
}

}  // namespace
}  // namespace nlaunch::lint
