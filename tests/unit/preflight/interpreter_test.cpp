#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

nlohmann::json python() {
  return {{"event", "interpreter"},
          {"python", "/venv/bin/python"},
          {"executable", "/venv/bin/python"},
          {"version", "3.11.7"},
          {"imported", nlohmann::json::array()},
          {"libcuda", ""},
          {"devices", nlohmann::json::array()},
          {"packages", {{"torch", "2.9.0+cu130"}, {"nvidia-nccl-cu13", "2.28.9"}}},
          {"torch_cuda", "13.0"},
          {"by", nlohmann::json::array()}};
}

NodeObservations said(const Machine& machine, const nlohmann::json& what, bool named = true) {
  auto observations = machine.of_node();
  observations.machine.cuda_driver = "13.0";
  observations.pythons[0] = {"/venv/bin/python", named};
  observations.answers["interpreter/learner"] = {what, ""};
  return observations;
}

TEST(CheckInterpreter, SaysWhatItIsAndWhatItHas) {
  EXPECT_EQ(
      lines(run_check("interpreter", said(Machine(1, 0), python()))),
      (Lines{"pass | learner | Python 3.11.7 (/venv/bin/python), nvidia-nccl-cu13 2.28.9, torch 2.9.0+cu130 "
             "|  |  | "}));
}

TEST(CheckInterpreter, FailsOneThatStartsCudaAndNamesTheFile) {
  auto what = python();
  what["imported"] = {"torch"};
  what["libcuda"] = "/usr/lib/libcuda.so.1";
  what["devices"] = {"/dev/nvidia0", "/dev/nvidiactl"};
  what["by"] = {"/venv/sitecustomize.py:3"};
  const std::string fix =
      "remove it from /venv/sitecustomize.py:3, or import it only where it is used: CUDA counts its GPUs "
      "once, and a CUDA_VISIBLE_DEVICES that is set later (by Ray, by vLLM) has no effect";
  EXPECT_EQ(lines(run_check("interpreter", said(Machine(1, 0), what))),
            (Lines{"fail | learner | /venv/sitecustomize.py:3 imports torch and starts CUDA before the "
                   "program starts | a Python that starts without torch and CUDA | " +
                   fix + " | user"}));
  what["devices"] = nlohmann::json::array();
  EXPECT_EQ(
      lines(run_check("interpreter", said(Machine(1, 0), what))),
      (Lines{
          "fail | learner | /venv/sitecustomize.py:3 imports torch before the program starts | a Python that "
          "starts without torch and CUDA | " +
          fix + " | user"}));
  EXPECT_EQ(worst(run_check("interpreter", said(Machine(1, 0, false), what))), Status::warn)
      << "no GPUs: it only takes time";
}

TEST(CheckInterpreter, HoldsTorchAgainstTheDriver) {
  const Machine machine(1, 0);
  auto observations = said(machine, python());
  observations.machine.cuda_driver = "12.8";
  EXPECT_EQ(lines(run_check("interpreter", observations)),
            (Lines{"fail | learner | its torch is built for CUDA 13.0, but the driver supports 12.8 | a "
                   "torch built for the driver's CUDA or older | install a torch built for CUDA 12, or load "
                   "the site's cuda-compat package | user"}));
  observations.answers["interpreter/learner"].said["torch_cuda"] = "12.9";
  EXPECT_EQ(faults(run_check("interpreter", observations)), Lines{})
      << "a minor release newer than the driver runs";
  observations.answers["interpreter/learner"].said["torch_cuda"] = "";
  EXPECT_EQ(faults(run_check("interpreter", observations)), Lines{});
}

TEST(CheckInterpreter, WarnsOfTwoWheels) {
  auto what = python();
  what["packages"]["nvidia-nccl-cu12"] = "2.27.5";
  EXPECT_EQ(lines(run_check("interpreter", said(Machine(1, 0), what))),
            (Lines{"warn | learner | two NCCL wheels: nvidia-nccl-cu12 2.27.5, nvidia-nccl-cu13 2.28.9 | one "
                   "| they put different files in the same place, and the last one installed wins: uninstall "
                   "both, then install the one that torch requires | user"}));
}

TEST(CheckInterpreter, OneThatEndsFailsAndOneThatHangsIsUnknown) {
  const nlohmann::json ended{{"event", "interpreter"},
                             {"ended", true},
                             {"error", "/venv/bin/python exited with code 1: it was run"}};
  EXPECT_EQ(lines(run_check("interpreter", said(Machine(1, 0), ended))),
            (Lines{"fail | learner | /venv/bin/python exited with code 1: it was run | a Python that starts "
                   "| try it manually, in the role's environment | user"}));
  EXPECT_EQ(
      lines(run_check("interpreter", said(Machine(1, 0), ended, false))),
      (Lines{
          "skip | learner | its command names no Python; the first one on PATH: /venv/bin/python exited with "
          "code 1: it was run |  |  | "}));
  const nlohmann::json hangs{{"event", "interpreter"},
                             {"error", "/venv/bin/python did not answer within 18s"}};
  EXPECT_EQ(lines(run_check("interpreter", said(Machine(1, 0), hangs))),
            (Lines{"unknown | learner | /venv/bin/python did not answer within 18s |  |  | "}));
}

NodeObservations imported(const nlohmann::json& what) {
  static const Machine machine(1, 0);
  auto observations = machine.of_node();
  observations.pythons[0] = {"/venv/bin/python", true};
  observations.answers["torch/learner"] = {what, ""};
  return observations;
}

TEST(CheckTorch, HoldsItsNcclAgainstTheRoles) {
  EXPECT_EQ(lines(run_check("torch", imported({{"version", "2.9.0"}, {"cuda", "13.0"}, {"nccl", "2.28.9"}}))),
            (Lines{"pass | learner | torch 2.9.0, CUDA 13.0, NCCL 2.28.9 |  |  | "}));
  EXPECT_EQ(
      lines(run_check("torch", imported({{"version", "2.9.0"}, {"cuda", "13.0"}, {"nccl", "2.27.5"}}))),
      (Lines{
          "fail | learner | torch 2.9.0, CUDA 13.0, NCCL 2.27.5 | NCCL 2.28.9 (/venv/libnccl.so.2, NCCL "
          "wheel) | torch loads a different NCCL than the one this role is set up for: it was built with its "
          "own (statically), or its wheel's directory comes first; `preload: [nccl]` settles it | user"}));
  EXPECT_EQ(lines(run_check("torch", imported({{"version", "1.13.0"}, {"cuda", ""}, {"nccl", ""}}))),
            (Lines{"pass | learner | torch 1.13.0, CUDA none, NCCL none |  |  | "}));
  EXPECT_EQ(lines(run_check("torch", imported({{"error", "ModuleNotFoundError: No module named 'torch'"}}))),
            (Lines{"unknown | learner | ModuleNotFoundError: No module named 'torch' |  |  | "}));
}

TEST(CheckInterpreter, WithoutANameOfTheFileItSaysWhereToLook) {
  auto what = python();
  what["libcuda"] = "/usr/lib/libcuda.so.1";
  what["devices"] = {"/dev/nvidia0"};
  const auto rows = lines(run_check("interpreter", said(Machine(1, 0), what)));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(
      rows[0].starts_with("fail | learner | code that its site-packages run at startup starts CUDA before "
                          "the program starts | "));
  EXPECT_NE(rows[0].find("remove it from sitecustomize.py, usercustomize.py or the .pth file, or import"),
            std::string::npos);
  what["libcuda"] = "";
  EXPECT_EQ(faults(run_check("interpreter", said(Machine(1, 0), what))), Lines{})
      << "a device alone is not CUDA";
}

TEST(CheckInterpreter, NamesAllThatImport) {
  auto what = python();
  what["imported"] = {"torch", "cupy"};
  what["by"] = {"/a.py:1", "/b.pth:2"};
  EXPECT_TRUE(lines(run_check("interpreter", said(Machine(1, 0), what)))
                  .at(0)
                  .starts_with(
                      "fail | learner | /a.py:1, /b.pth:2 imports torch, cupy before the program starts | "));
}

TEST(CheckInterpreter, ARoleWithoutGpusMayHaveAnyTorch) {
  Machine machine(1, 0);
  machine.plan.roles[0].gpus = 0;
  auto observations = said(machine, python());
  observations.machine.cuda_driver = "12.8";
  EXPECT_EQ(faults(run_check("interpreter", observations)), Lines{});
  machine.plan.roles[0].gpus = 1;
  EXPECT_EQ(faults(run_check("interpreter", observations)).size(), 1U);
  observations.machine.cuda_driver = "";
  EXPECT_EQ(faults(run_check("interpreter", observations)), Lines{});
}

TEST(CheckInterpreter, AProbeThatDoesNotAnswerIsUnknown) {
  const Machine machine(1, 0);
  auto observations = said(machine, python());
  observations.answers["interpreter/learner"] = {nullptr, "it did not answer"};
  EXPECT_EQ(lines(run_check("interpreter", observations)),
            Lines{"unknown | learner | it did not answer |  |  | "});
  observations.answers.clear();
  EXPECT_TRUE(run_check("interpreter", observations).empty());
}

TEST(CheckTorch, WithoutAnAnswerOrALibraryNothingIsCompared) {
  const nlohmann::json what{{"version", "2.9.0"}, {"cuda", "13.0"}, {"nccl", "2.27.5"}};
  auto observations = imported(what);
  observations.libraries[0].version.clear();
  EXPECT_EQ(worst(run_check("torch", observations)), Status::pass);
  observations.libraries.clear();
  EXPECT_EQ(worst(run_check("torch", observations)), Status::pass);
  observations.answers["torch/learner"] = {nullptr, "it did not answer"};
  EXPECT_EQ(lines(run_check("torch", observations)), Lines{"unknown | learner | it did not answer |  |  | "});
  observations.answers.clear();
  EXPECT_TRUE(run_check("torch", observations).empty());
}

}  // namespace
}  // namespace nlaunch::preflight
