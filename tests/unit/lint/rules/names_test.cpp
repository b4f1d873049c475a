#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(UnknownVariable, OfAFamilyThatIsKnown) {
  EXPECT_EQ(whole("unknown-variable", scene({set("NCCL_SOCKET_IFNAM", "hsn")})),
            (Texts{"NCCL_SOCKET_IFNAM is not read by any release of NCCL",
                   "unknown variables are silently ignored: the setting has no effect",
                   "NCCL_SOCKET_IFNAME, if that is what you meant (nlaunch env --doc NCCL_SOCKET_IFNAME)",
                   "the catalogue covers every variable up to NCCL 2.30.7: nlaunch env --list"}));
  EXPECT_EQ(whole("unknown-variable", scene({set("TORCH_FR_QWERTYUIOP_ASDFGHJKL", "1")})).at(2), "");
  EXPECT_EQ(found("unknown-variable", scene({open("NCCL_NOT_A_NAME"), set("MY_OWN", "1"),
                                             set("NCCL_DEBUG", "1"), unset("NCCL_NOT_ANOTHER")})),
            Texts{"error a.env:1:1 NCCL_NOT_A_NAME is not read by any release of NCCL"});
}

TEST(UnknownVariable, AMistakeIsExplained) {
  EXPECT_EQ(whole("unknown-variable", scene({set("NCCL_BUFFER_SIZE", "1")})),
            (Texts{"NCCL_BUFFER_SIZE has no effect", "the name is shorter", "NCCL_BUFFSIZE",
                   "the sources of NCCL 2.3.5 to 2.30.7 do not have the name"}));
  // Of no family.
  EXPECT_EQ(found("unknown-variable", scene({set("TORCH_DISTRIBUTED_TIMEOUT", "1")})),
            Texts{"error a.env:1:1 TORCH_DISTRIBUTED_TIMEOUT has no effect"});
}

TEST(UnknownVariable, ANewerReleaseMayKnowIt) {
  const auto with = [](const std::string& owner, const std::string& release) {
    auto input = scene({set("NCCL_NOT_A_NAME", "1")});
    input.environments[0].releases[owner] = version(release);
    return input;
  };
  EXPECT_EQ(found("unknown-variable", with("NCCL", "2.30.8")),
            Texts{"warning a.env:1:1 NCCL_NOT_A_NAME is not read by any release of NCCL"});
  EXPECT_EQ(whole("unknown-variable", with("NCCL", "2.30.8")).at(1),
            "this nlaunch knows NCCL up to 2.30.7, but 2.30.8 is loaded");
  for (const auto& input : {with("NCCL", "2.30.7"), with("NCCL", "2.20.3"), with("PyTorch", "9.0")}) {
    EXPECT_EQ(found("unknown-variable", input),
              Texts{"error a.env:1:1 NCCL_NOT_A_NAME is not read by any release of NCCL"});
  }
}

TEST(UnknownVariable, AnOwnerMayHaveNoReleases) {
  auto input = scene({set("GLOO_NOT_A_NAME", "1")});
  input.environments[0].releases["Gloo"] = version("1.0");
  EXPECT_EQ(found("unknown-variable", input),
            Texts{"error a.env:1:1 GLOO_NOT_A_NAME is not read by any release of Gloo"});
}

Texts read_by(const std::string& text, const Setting& setting = set("NCCL_MINE", "1")) {
  auto input = scene({setting});
  input.readings = {{"empty.py", ""}, {"a.py", text}, {"b.py", text}};
  return found("unknown-variable", input);
}

TEST(UnknownVariable, AProgramMayReadANameOfItsOwn) {
  for (const auto* text :
       {"NCCL_MINE", "$NCCL_MINE", "a NCCL_MINE", "NCCL_MINE b", "a['NCCL_MINE']", "a,,NCCL_MINE."}) {
    EXPECT_EQ(read_by(text), Texts{"note a.env:1:1 NCCL_MINE is read only by a.py"}) << text;
  }
  for (const auto* text : {"", "NCCL_MINER", "XNCCL_MINE", "NCCL_ MINE", "NCCL"}) {
    EXPECT_EQ(read_by(text), Texts{"error a.env:1:1 NCCL_MINE is not read by any release of NCCL"}) << text;
  }
  EXPECT_EQ(read_by("NCCL_TIMEOUT", set("NCCL_TIMEOUT", "1")),
            Texts{"note a.env:1:1 NCCL_TIMEOUT is read only by a.py"});
  EXPECT_EQ(read_by("MY_OWN", set("MY_OWN", "1")), Texts{});
  EXPECT_EQ(read_by("NCCL_MINE", local(set("NCCL_MINE", "1"))), Texts{});
}

LintInput with_release(const Setting& setting, const std::string& owner, const std::string& release) {
  auto input = scene({setting});
  input.environments[0].releases[owner] = version(release);
  return input;
}

TEST(NotInRelease, NotYet) {
  const auto setting = set("NCCL_LL128_C2C", "0");
  EXPECT_EQ(whole("not-in-release", with_release(setting, "NCCL", "2.26.2")),
            (Texts{"NCCL 2.26.2 does not read NCCL_LL128_C2C yet",
                   "NCCL reads it since 2.27.3; earlier releases ignore it",
                   "use NCCL 2.27.3 or newer, or leave it out", "NCCL: src/graph/tuning.cc@2.30.7"}));
  EXPECT_EQ(found("not-in-release", with_release(setting, "NCCL", "2.26.2")),
            Texts{"error a.env:1:1 NCCL 2.26.2 does not read NCCL_LL128_C2C yet"});
  EXPECT_EQ(found("not-in-release", with_release(setting, "NCCL", "2.27.3")), Texts{});
  EXPECT_EQ(found("not-in-release", with_release(setting, "PyTorch", "2.2.0")), Texts{});
  EXPECT_EQ(found("not-in-release", scene({setting})), Texts{});
  EXPECT_EQ(found("not-in-release", with_release(unset("NCCL_LL128_C2C"), "NCCL", "2.26.2")), Texts{});
  EXPECT_EQ(found("not-in-release", with_release(set("NCCL_NOT_A_NAME", "1"), "NCCL", "2.26.2")), Texts{});
}

TEST(NotInRelease, NoLonger) {
  const auto setting = set("NCCL_TREE_THRESHOLD", "0");
  const Texts told{"warning a.env:1:1 NCCL_TREE_THRESHOLD is no longer read"};
  EXPECT_EQ(found("not-in-release", scene({setting})), told);
  EXPECT_EQ(found("not-in-release", with_release(setting, "NCCL", "2.5.6")), told);
  EXPECT_EQ(found("not-in-release", with_release(setting, "NCCL", "2.4.8")), Texts{});
  EXPECT_EQ(found("not-in-release", with_release(setting, "NCCL", "2.4.1")),
            Texts{"error a.env:1:1 NCCL 2.4.1 does not read NCCL_TREE_THRESHOLD yet"});
  EXPECT_EQ(whole("not-in-release", scene({setting})),
            (Texts{"NCCL_TREE_THRESHOLD is no longer read", "NCCL 2.4.8 was the last release that knew it",
                   "NCCL_ALGO", "NCCL: src/init.cc@2.4.8"}));
  EXPECT_EQ(whole("not-in-release", scene({set("NCCL_AGG_CHANNEL_SIZE", "1")})).at(2), "leave it out");
  // Older than all that were looked at.
  EXPECT_EQ(found("not-in-release", with_release(set("NCCL_IB_GDR_LEVEL", "1"), "NCCL", "2.30.7")),
            Texts{"warning a.env:1:1 NCCL_IB_GDR_LEVEL is no longer read"});
}

TEST(NotInRelease, AnotherOwnerMayReadIt) {
  // CUDA has always read it, NCCL since 2.17.1.
  EXPECT_EQ(found("not-in-release", with_release(set("CUDA_LAUNCH_BLOCKING", "1"), "NCCL", "2.10.3")),
            Texts{});
}

TEST(LegacyName, AnOldNameIsTold) {
  EXPECT_EQ(whole("legacy-name", scene({set("NCCL_MIN_NRINGS", "4")})),
            (Texts{"NCCL_MIN_NRINGS is an old name", "it is now called NCCL_MIN_NCHANNELS",
                   "NCCL_MIN_NCHANNELS (set both if older releases must read it)",
                   "NCCL: src/graph/connect.cc@2.30.7"}));
  EXPECT_EQ(found("legacy-name", scene({set("NCCL_MIN_NRINGS", "4"), unset("NCCL_MIN_NCHANNELS")})).size(),
            1U);
  EXPECT_EQ(
      found("legacy-name", scene({unset("NCCL_MIN_NRINGS"), set("NCCL_DEBUG", "WARN"), set("MY_OWN", "1")})),
      Texts{});
  // Another rule says that it is no longer read.
  EXPECT_EQ(found("legacy-name", scene({set("NCCL_TREE_THRESHOLD", "0")})), Texts{});
}

TEST(LegacyName, BothNamesShouldSayTheSame) {
  const auto beside = [](const Setting& one, const Setting& other) {
    return found("legacy-name", scene({one, other}));
  };
  EXPECT_EQ(beside(set("NCCL_MIN_NRINGS", "4"), set("NCCL_MIN_NCHANNELS", "8")),
            Texts{"warning a.env:1:1 NCCL_MIN_NRINGS=4 conflicts with NCCL_MIN_NCHANNELS=8"});
  EXPECT_EQ(beside(set("NCCL_MIN_NRINGS", "4"), set("NCCL_MIN_NCHANNELS", "4")), Texts{});
  EXPECT_EQ(beside(set("NCCL_MIN_NRINGS", "4"), open("NCCL_MIN_NCHANNELS")), Texts{});
  EXPECT_EQ(beside(open("NCCL_MIN_NRINGS"), set("NCCL_MIN_NCHANNELS", "a text of its own, not short")),
            Texts{});
}

TEST(LegacyName, ARuleOfReleasesSpeaksOfThoseThatDoNotReadIt) {
  const auto setting = set("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
  const Texts told{"warning a.env:1:1 TORCH_NCCL_TRACE_BUFFER_SIZE is an old name"};
  EXPECT_EQ(found("legacy-name", with_release(setting, "PyTorch", "2.1.0")), Texts{});
  EXPECT_EQ(found("legacy-name", with_release(setting, "PyTorch", "2.2.0")), told);
  EXPECT_EQ(found("legacy-name", scene({setting})), told);
}

TEST(UnknownVariable, OfVllmIfItIsAlmostAnother) {
  EXPECT_EQ(whole("unknown-variable", scene({set("VLLM_HOST_IF", "hsn0")})),
            (Texts{"VLLM_HOST_IF is not a variable of vLLM, but VLLM_HOST_IP is",
                   "unknown variables are silently ignored: the setting has no effect",
                   "VLLM_HOST_IP takes the address of the node it is set on, not the name of an interface: "
                   "set it in a command that runs on each node (nlaunch env --doc VLLM_HOST_IP)",
                   "vllm/envs.py@0.33.0"}));
  EXPECT_EQ(whole("unknown-variable", scene({set("VLLM_LOGGING_LEVE", "DEBUG")})).at(2),
            "VLLM_LOGGING_LEVEL (nlaunch env --doc VLLM_LOGGING_LEVEL)");
  EXPECT_EQ(found("unknown-variable",
                  script("export VLLM_HOST_IF=a\nsrun bash -c \"echo \\$VLLM_HOST_IF; python a.py\"\n"))
                .size(),
            1U);
  EXPECT_EQ(found("unknown-variable", scene({set("VLLM_MY_MODEL", "a"), set("VLLM_HOST_IP", "a")})), Texts{});
  EXPECT_EQ(found("unknown-variable", script("export VLLM_PORTS=8000\nvllm serve m --port $VLLM_PORTS\n")),
            Texts{});
}

TEST(UnknownVariable, WhatAContainerDoesNotTake) {
  EXPECT_EQ(
      found("unknown-variable", script("export APPTAINERENV_HOME=/h\napptainer exec a.sif python a.py\n")),
      Texts{"error job.sh:1:8 APPTAINERENV_HOME has no effect"});
  EXPECT_EQ(found("unknown-variable", scene({set("SP_NCCL_SO_PATH", "/lib")})),
            Texts{"error a.env:1:1 SP_NCCL_SO_PATH has no effect"});
}

TEST(UnknownVariable, ReadByAPythonProgramOfTheScript) {
  const auto file = std::filesystem::path(testing::TempDir()) / "reads_a_variable.py";
  std::ofstream(file) << "import os\nwait = os.environ['NCCL_OWN_WAIT']\n";
  const auto text = "export NCCL_OWN_WAIT=1\npython " + file.native() + "\n";
  const auto told = found("unknown-variable", script(text));
  std::filesystem::remove(file);
  EXPECT_EQ(told, Texts{"note job.sh:1:8 NCCL_OWN_WAIT is read only by " + file.native()});
  EXPECT_EQ(found("unknown-variable", script(text)),
            Texts{"error job.sh:1:8 NCCL_OWN_WAIT is not read by any release of NCCL"});
}

TEST(UnknownVariable, NamesThatRocmDoesNotRead) {
  EXPECT_EQ(whole("unknown-variable", scene({set("RCCL_DEBUG", "INFO")})),
            (Texts{"RCCL_DEBUG has no effect", "RCCL has no such variable: it logs as NCCL_DEBUG says",
                   "NCCL_DEBUG", "RCCL src/debug.cc"}));
  EXPECT_EQ(whole("unknown-variable", scene({set("MIOPEN_USER_DB", "/tmp/x")})),
            (Texts{"MIOPEN_USER_DB has no effect", "the name ends with _PATH", "MIOPEN_USER_DB_PATH",
                   "MIOpen docs/reference/env_variables.rst"}));
}

TEST(UnknownVariable, OfAMistypedFamily) {
  const auto of_line = [](const std::string& line) {
    return found("unknown-variable", script("#!/bin/bash\n" + line + "\npython a.py\n"));
  };
  EXPECT_EQ(of_line("export NNCL_DEBUG=INFO"),
            Texts{"warning job.sh:2:8 nothing reads NNCL_DEBUG, but NCCL_DEBUG is a variable"});
  EXPECT_EQ(of_line("export NCLL_DEBUG=INFO").size(), 1U);
  for (const std::string right : {"export NNCL_FOO=1", "export MCCL_DEBUG_X=1", "NNCL_DEBUG=1"})
    EXPECT_EQ(of_line(right), Texts{}) << right;
}

TEST(UnknownVariable, OfOtherLibrariesIsNotOurs) {
  EXPECT_EQ(found("unknown-variable", script("export HCCL_SOCKET_IFNAME=eth0\npython a.py\n")), Texts{});
}

TEST(UnknownVariable, SlipsInNamesThatAreSetOften) {
  EXPECT_EQ(found("unknown-variable", script("export PYTHONBUFFERED=1\npython a.py\n")),
            Texts{"error job.sh:1:8 PYTHONBUFFERED has no effect"});
  EXPECT_EQ(found("unknown-variable", script("export TOKENIZER_PARALLELISM=false\npython a.py\n")),
            Texts{"warning job.sh:1:8 nothing reads TOKENIZER_PARALLELISM, but TOKENIZERS_PARALLELISM is a "
                  "variable"});
  EXPECT_EQ(found("unknown-variable", script("export VLLM_LOG_LEVEL=WARNING\npython a.py\n")).size(), 1U);
  EXPECT_EQ(
      found("unknown-variable", script("export WANDB_NAME=a OMP_NUM_THREADS=8 HF_HOME=/x\npython a.py\n")),
      Texts{});
}

}  // namespace
}  // namespace nlaunch::lint
