#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(PreloadEverywhere, AnExportedPreloadIsTold) {
  const Texts told{"error a.env:1:1 LD_PRELOAD is exported to everything that follows"};
  EXPECT_EQ(found("preload-everywhere", scene({set("LD_PRELOAD", "libx.so")})), told);
  EXPECT_EQ(found("preload-everywhere", scene({open("LD_PRELOAD")})), told);
  EXPECT_EQ(found("preload-everywhere",
                  scene({set("LD_PRELOAD", ""), unset("LD_PRELOAD"), local(set("LD_PRELOAD", "libx.so")),
                         once(set("LD_PRELOAD", "libx.so")), set("LD_LIBRARY_PATH", "/x")})),
            Texts{});
  for (const auto* all :
       {"/usr/lib/libtcmalloc.so.4", "/a/libcrypto.so /a/libssl.so.1.1", "libjemalloc.so:libgomp.so.1"})
    EXPECT_EQ(found("preload-everywhere", scene({set("LD_PRELOAD", all)})), Texts{}) << all;
  EXPECT_EQ(found("preload-everywhere", scene({set("LD_PRELOAD", "libssl.so:/a/libnccl.so.2")})), told);
  auto plan = scene({set("LD_PRELOAD", "libx.so")});
  plan.plan = true;
  EXPECT_EQ(found("preload-everywhere", plan), Texts{});
}

TEST(RayJob, WhatTheShellExportsStaysThere) {
  const std::string submit = "ray job submit --address http://head:8265 -- python a.py\n";
  const std::string env =
      "ray job submit --runtime-env-json='{\"env_vars\": {\"NCCL_DEBUG\": \"WARN\"}}' -- python a.py\n";
  const std::string set = "export NCCL_DEBUG=WARN\n";
  const auto of = [](const std::string& text) { return found("ray-job-environment", script(text)); };
  EXPECT_EQ(of(set + submit),
            Texts{"warning job.sh:1:8 NCCL_DEBUG does not reach the job that `ray job submit` starts"});
  EXPECT_EQ(of(set + "export NCCL_NVLS_ENABLE=0\n" + env),
            Texts{"warning job.sh:2:8 NCCL_NVLS_ENABLE does not reach the job that `ray job submit` starts"});
  EXPECT_EQ(of(set + env), Texts{});
  EXPECT_EQ(of(set + "ray start --head\n" + submit), Texts{});
  EXPECT_EQ(of("ray start --head\n" + set + submit).size(), 1U);
  EXPECT_EQ(of(set + "ray job submit --runtime-env=env.yaml -- python a.py\n"), Texts{});
  EXPECT_EQ(of("export MINE=1 RAY_ADDRESS=head CUDA_VISIBLE_DEVICES=0\n" + submit), Texts{});
  EXPECT_EQ(of(set + "python a.py\n"), Texts{});
}

TEST(PreloadUnneeded, AServiceNeedsNone) {
  LintInput input;
  input.environments = {environment("web", {}), environment("learner", {}), environment("other", {})};
  input.environments[0].kind = RoleKind::service;
  input.environments[0].preload = {"nccl", "other"};
  input.environments[0].preload_span = {a_file("a.yaml"), 4, 2, 1};
  input.environments[1].kind = RoleKind::learner;
  input.environments[1].preload = {"nccl"};
  input.environments[2].kind = RoleKind::service;
  EXPECT_EQ(found("preload-unneeded", input),
            Texts{"warning a.yaml:4:2 (web) the service 'web' preloads nccl"});
}

TEST(ContainerEnvironment, WhatDoesNotReachTheProgramIsTold) {
  LintInput input;
  input.environments = {environment("learner", {}), environment("other", {})};
  input.environments[0].cleaned_by = "--clearenv";
  input.environments[0].wrapper_span = {a_file("a.yaml"), 4, 2, 1};
  EXPECT_EQ(found("container-environment", input),
            Texts{"error a.yaml:4:2 (learner) the wrapper of 'learner' clears the environment (--clearenv)"});
  EXPECT_EQ(whole("container-environment", input).at(2),
            "remove --clearenv: the plan already sets the environment");
  input.environments[0].plan_passes = true;
  EXPECT_EQ(found("container-environment", input), Texts{});
  input.from_modules = {set("FI_PROVIDER", "cxi")};
  EXPECT_EQ(
      found("container-environment", input),
      Texts{"warning a.yaml:4:2 (learner) the wrapper of 'learner' clears the environment (--clearenv)"});
  EXPECT_EQ(whole("container-environment", input).at(1),
            "variables set by the site's modules (FI_PROVIDER, ...) do not reach the program; those set by "
            "the plan do");
}

Texts overrides(const std::string& text) {
  return found("module-overrides", script(text));
}

TEST(ModuleOverrides, AModuleOfNcclBehindASettingIsTold) {
  EXPECT_EQ(overrides("export NCCL_DEBUG=WARN\nexport NCCL_ALGO=Ring\nmodule load brics/NCCL/2.21\n"),
            Texts{"warning job.sh:1:8 NCCL_DEBUG is set before the module brics/NCCL/2.21 is loaded"});
  EXPECT_EQ(overrides("module load cuda nccl\nexport NCCL_DEBUG=WARN\n"), Texts{});
  EXPECT_EQ(overrides("export NCCL_DEBUG=WARN; module load nccl\n"), Texts{});
  EXPECT_EQ(overrides("export NCCL_DEBUG=WARN\nmodule load cuda\n"), Texts{});
  EXPECT_EQ(overrides("export FI_PROVIDER=cxi\nunset NCCL_DEBUG\nNCCL_DEBUG=WARN a\nmodule load nccl\n"),
            Texts{});
  EXPECT_EQ(overrides("export FI_PROVIDER=cxi\nexport NCCL_DEBUG=WARN\nmodule load cuda\nmodule load nccl\n"),
            Texts{"warning job.sh:2:8 NCCL_DEBUG is set before the module nccl is loaded"});
}

TEST(ModuleOverrides, OfAPlanWhatBothSetIsTold) {
  const auto said = [](const Setting& by_plan, const Setting& by_module) {
    LintInput input;
    input.plan = true;
    input.environments = {environment("learner", {by_plan})};
    input.from_modules = {by_module};
    return found("module-overrides", input);
  };
  EXPECT_EQ(said(set("A", "1"), set("A", "2")),
            Texts{"note learner.env:1:1 (learner) a module also sets A=2"});
  EXPECT_EQ(said(set("A", "1"), set("A", "1")), Texts{});
  EXPECT_EQ(said(set("A", "1"), set("B", "2")), Texts{});
  EXPECT_EQ(said(set("A", "1"), open("A")), Texts{});
  EXPECT_EQ(said(open("A"), set("A", "2")), Texts{});
  auto gone = unset("A");
  gone.value = "1";
  EXPECT_EQ(said(gone, set("A", "2")), Texts{});
  EXPECT_EQ(said(local(set("A", "1")), set("A", "2")), Texts{});
}

Texts purge(const std::string& text) {
  return found("module-purge", script(text));
}

TEST(ModulePurge, OnACraySystem) {
  for (const std::string module : {"PrgEnv-gnu", "brics/nccl", "craype-arm-grace"}) {
    EXPECT_EQ(purge("true\nmodule purge\nmodule load cuda " + module + "\n"),
              Texts{"warning job.sh:2:1 module purge on a Cray system"});
  }
  EXPECT_EQ(purge("module purge\nmodule load cuda my-PrgEnv-gnu\n"), Texts{});
  EXPECT_EQ(purge("module\nmodule list\nmodule load brics/nccl\npurge\necho purge\n"), Texts{});
  EXPECT_EQ(purge("module load brics/nccl\nmodule purge\nmodule purge\n").size(), 2U);
}

}  // namespace
}  // namespace nlaunch::lint
