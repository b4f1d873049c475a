#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/findings.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

struct Gemm : Machine {
  json said = json::parse(R"({"event":"gemm","size":4096,"gpus":[
    {"gpu":0,"bus_id":"00000000:06:00.0","name":"NVIDIA H200","hash":"00c0ffee00c0ffee","repetitions":5120,
     "differing":0,"wrong_samples":0,"flops":402e12},
    {"gpu":1,"bus_id":"00000000:07:00.0","name":"NVIDIA H200","hash":"00c0ffee00c0ffee","repetitions":5056,
     "differing":0,"wrong_samples":0,"flops":398.6e12}]})");

  Gemm() : Machine(1, 1) {}

  [[nodiscard]] NodeObservations of_gemm() const {
    auto out = of_node();
    out.answers["gemm"] = {said, ""};
    return out;
  }
  [[nodiscard]] Lines rows() const { return lines(run_check("gemm", of_gemm())); }
};

TEST(CheckGemm, PassesWhenAllRepetitionsAgree) {
  EXPECT_EQ(Gemm().rows(), (Lines{"pass | bf16 matrix products | 2 GPUs at the same time, 10176 products, "
                                  "bitwise identical on each GPU: 399 to 402 TFLOP/s |  |  | "}));
  const auto figures = figures_of("gemm", Gemm().of_gemm());
  ASSERT_EQ(figures.size(), 2);
  EXPECT_EQ(figures[1].from, "GPU 1");
  EXPECT_EQ(figures[1].unit, "FLOP/s");
}

TEST(CheckGemm, ARepetitionThatDiffersIsSilentDataCorruption) {
  Gemm machine;
  machine.said["gpus"][1]["differing"] = 2;
  machine.said["gpus"][1]["first_differing"] = 77;
  EXPECT_EQ(machine.rows(),
            (Lines{"fail | GPU 1 (00000000:07:00.0) | 2 of 5056 products of the same matrices differ from "
                   "the first; the first different one is number 77 | the same bits every time | silent data "
                   "corruption is suspected: do not train on this GPU; report the node | admin",
                   "pass | bf16 matrix products | 1 GPUs at the same time, 5120 products, bitwise identical "
                   "on each GPU: 402 TFLOP/s |  |  | "}));
}

TEST(CheckGemm, AProductThatIsNoneFails) {
  Gemm machine;
  machine.said["gpus"][0]["wrong_samples"] = 8;
  EXPECT_EQ(
      machine.rows()[0],
      "fail | GPU 0 (00000000:06:00.0) | 8 of 8 elements of a matrix product have a wrong sum | correct "
      "sums | silent data corruption is suspected: do not train on this GPU; report the node | admin");
}

TEST(CheckGemm, WhatCannotBeMeasuredBlamesNobody) {
  Gemm machine;
  machine.said["gpus"][0] = {{"gpu", 0}, {"bus_id", "b"}, {"name", "T4"}, {"unavailable", "no bf16"}};
  machine.said["gpus"][1] = {
      {"gpu", 1}, {"bus_id", "c"}, {"name", "T4"}, {"error", "cudaMalloc: out of memory"}};
  EXPECT_EQ(machine.rows(), (Lines{"skip | GPU 0 (b) | no bf16 |  |  | ",
                                   "unknown | GPU 1 (c) | cudaMalloc: out of memory |  |  | "}));
  EXPECT_TRUE(gemm_fingerprints(machine.of_gemm()).empty());
}

Observations of(const Machine& machine, std::vector<Fingerprint> prints) {
  Observations out{.plan = machine.plan};
  out.fingerprints = std::move(prints);
  return out;
}

TEST(CheckAgreement, NamesTheMinority) {
  const Machine machine(1, 1);
  auto observations =
      of(machine, {{0, "GPU 0", "H200", "a"}, {0, "GPU 1", "H200", "a"}, {1, "GPU 0", "H200", "b"}});
  observations.hosts = {"n1", "n2"};
  const auto rows = run_check("gemm-agreement", observations);
  EXPECT_EQ(lines(rows),
            (Lines{"fail | n2 GPU 0 | its product of the same matrices has different bits than that of 2 "
                   "other GPUs of its model | the same bits on every H200 | silent data corruption is "
                   "suspected: do not train on this GPU; report the node | admin"}));
  EXPECT_EQ(rows[0].hosts, (Lines{"n2"}));
}

TEST(CheckAgreement, OfTwoThatDifferOneIsWrong) {
  const Machine machine(1, 1);
  auto observations = of(machine, {{0, "GPU 0", "H200", "a"}, {1, "GPU 0", "H200", "b"}});
  observations.hosts = {"n1", "n2"};
  const auto rows = run_check("gemm-agreement", observations);
  EXPECT_EQ(lines(rows),
            (Lines{"fail | H200 | n1 GPU 0, n2 GPU 0 computed different bits for the same product: one of "
                   "them is wrong | the same bits on every GPU of a model | silent data corruption "
                   "is suspected: compare each with a third GPU of the model before training on any "
                   "of them | admin"}));
  EXPECT_TRUE(rows[0].hosts.empty());
}

TEST(CheckAgreement, ComparesGpusOfOneModelOnly) {
  const Machine machine(1, 1);
  EXPECT_EQ(
      lines(run_check(
          "gemm-agreement",
          of(machine, {{0, "GPU 0", "A100", "a"}, {0, "GPU 1", "H200", "b"}, {0, "GPU 2", "H200", "b"}}))),
      (Lines{"skip | A100 | only one GPU of this model: nothing to compare it with |  |  | ",
             "pass | H200 | 2 GPUs computed the same bits |  |  | "}));
  EXPECT_TRUE(run_check("gemm-agreement", of(machine, {})).empty());
}

TEST(Findings, CarryTheFingerprints) {
  Findings findings;
  findings.fingerprints = gemm_fingerprints(Gemm().of_gemm());
  const auto back = findings_from_json(to_json(findings));
  ASSERT_EQ(back.fingerprints.size(), 2);
  EXPECT_EQ(back.fingerprints[1].gpu, "GPU 1");
  EXPECT_EQ(back.fingerprints[1].model, "NVIDIA H200");
  EXPECT_EQ(back.fingerprints[1].value, "00c0ffee00c0ffee");
}

TEST(CheckGemm, OneRateIsToldOnce) {
  Gemm machine;
  machine.said["gpus"][1]["flops"] = 402.4e12;
  EXPECT_TRUE(machine.rows().at(0).ends_with("bitwise identical on each GPU: 402 TFLOP/s |  |  | "));
}

TEST(CheckGemm, WithoutAnAnswerNothingIsMeasured) {
  Gemm machine;
  auto observations = machine.of_node();
  EXPECT_TRUE(run_check("gemm", observations).empty());
  EXPECT_TRUE(gemm_fingerprints(observations).empty());
  observations.answers["gemm"] = {nullptr, "nlaunch-probe gemm did not answer within 60 s"};
  EXPECT_EQ(lines(run_check("gemm", observations)),
            Lines{"unknown | GPUs | nlaunch-probe gemm did not answer within 60 s |  |  | "});
  EXPECT_TRUE(figures_of("gemm", observations).empty());
  machine.said = {{"event", "gemm"}, {"error", "CUDA has no device here"}};
  EXPECT_EQ(machine.rows(), Lines{"unknown | GPUs | CUDA has no device here |  |  | "});
  EXPECT_TRUE(figures_of("gemm", machine.of_gemm()).empty());
}

TEST(CheckGemm, OneWrongSampleIsEnough) {
  Gemm machine;
  machine.said["gpus"][0]["wrong_samples"] = 1;
  machine.said["gpus"][1]["differing"] = 1;
  machine.said["gpus"][1]["first_differing"] = 0;
  const auto rows = machine.rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].starts_with("fail | GPU 0 (00000000:06:00.0) | 1 of 8 elements"));
  EXPECT_TRUE(rows[1].starts_with("fail | GPU 1 (00000000:07:00.0) | 1 of 5056 products"));
}

TEST(CheckAgreement, HalfOfThemAreNoMajority) {
  const Machine machine(1, 1);
  auto observations = of(machine, {{0, "GPU 0", "H200", "a"},
                                   {0, "GPU 1", "H200", "b"},
                                   {0, "GPU 2", "H200", "b"},
                                   {0, "GPU 3", "H200", "a"}});
  auto rows = run_check("gemm-agreement", observations);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].subject, "H200");
  EXPECT_TRUE(rows[0].hosts.empty()) << "there is one machine alone";
  observations.hosts = {"n1", "n2"};
  rows = run_check("gemm-agreement", observations);
  EXPECT_EQ(rows.at(0).hosts, Lines{"n1"}) << "all of them are on it";
  observations.fingerprints.push_back({1, "GPU 0", "H200", "a"});
  rows = run_check("gemm-agreement", observations);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].subject, "n1 GPU 1");
  EXPECT_EQ(rows[1].subject, "n1 GPU 2");
  EXPECT_TRUE(rows[0].value.ends_with("that of 3 other GPUs of its model"));
}

TEST(CheckAgreement, OnOneMachineAGpuHasNoHost) {
  const Machine machine(1, 1);
  const auto rows = run_check(
      "gemm-agreement",
      of(machine, {{0, "GPU 0", "H200", "a"}, {0, "GPU 1", "H200", "a"}, {0, "GPU 2", "H200", "b"}}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].subject, "GPU 2");
  EXPECT_TRUE(rows[0].hosts.empty());
}

}  // namespace
}  // namespace nlaunch::preflight
