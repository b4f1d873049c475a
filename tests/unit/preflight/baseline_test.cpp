#include "preflight/report/baseline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/version.h"
#include "sys/files.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kLarge = 128U << 20U;

Report report(std::size_t nodes = 2) {
  Report out;
  out.time = 1795284000;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto host = fmt::format("n{}", i);
    out.nodes.push_back({host, "x86_64", "NVIDIA H200", 4, "570.1", "2.28.9"});
    out.measurements.push_back(
        {fmt::format("node {}", i), "all_reduce", "nccl", 4, kLarge, 1e-3, 330e9, "node"});
    out.measurements.push_back({fmt::format("node {}", i), "all_reduce", "nccl", 4, 8, 2e-5, 4e5, "node"});
    for (const auto* gpu : {"GPU 0", "GPU 1", "GPU 2", "GPU 3"})
      out.figures.push_back({"gemm", host, gpu, "", 700e12, "FLOP/s"});
    out.figures.push_back({"clock", host, host, "", 1e-5, "s"});
  }
  return out;
}

Lines compared(const Report& was, const Report& is) {
  return lines(compare(baseline_of(was), is, "good.json"));
}

TEST(Baseline, HoldsOneValueForAllGroupsOfAKindAndNoLatencies) {
  const auto baseline = baseline_of(report());
  ASSERT_EQ(baseline.values.size(), 2U);
  EXPECT_EQ(baseline.values[0].name, "all_reduce of node (nccl, 4 ranks) at 128MiB");
  EXPECT_EQ(baseline.values[0].value, 330e9);
  EXPECT_EQ(baseline.values[1].name, "gemm");
  EXPECT_EQ(baseline.values[1].value, 700e12);
}

TEST(Baseline, WhatIsEqualPasses) {
  EXPECT_EQ(compared(report(1), report(1)),
            (Lines{"pass | all_reduce of node 0 at 128MiB | 330.0 GB/s, as in the baseline | 330.0 GB/s "
                   "(good.json) |  | ",
                   "pass | gemm | 700.0 TFLOP/s, as in the baseline | 700.0 TFLOP/s (good.json) |  | "}));
}

TEST(Baseline, WorseIsAWarningAndMuchWorseAFailureOfThatNode) {
  auto now = report();
  now.measurements[0].busbw = 303e9;
  for (auto& figure : now.figures) {
    if (figure.what == "gemm" && figure.host == "n1") figure.value = 500e12;
  }
  const auto rows = compare(baseline_of(report()), now, "good.json");
  EXPECT_EQ(
      faults(rows),
      (Lines{"warn | all_reduce of node 0 at 128MiB | 303.0 GB/s, 8 % less than in the baseline | 330.0 GB/s "
             "(good.json) | if nothing was changed on purpose, report the node | admin",
             "fail | gemm | 500.0 TFLOP/s, 29 % less than in the baseline | 700.0 TFLOP/s (good.json) | if "
             "nothing was changed on purpose, report the node | admin"}));
  EXPECT_EQ(rows.back().hosts, std::vector<std::string>{"n1"});
}

TEST(Baseline, FourPercentIsNotJudgedAndBetterIsSaid) {
  auto now = report(1);
  now.measurements[0].busbw = 330e9 * 0.96;
  now.figures[0].value = now.figures[1].value = now.figures[2].value = now.figures[3].value = 770e12;
  EXPECT_EQ(
      compared(report(1), now),
      (Lines{
          "pass | all_reduce of node 0 at 128MiB | 316.8 GB/s, 4 % less than in the baseline | 330.0 GB/s "
          "(good.json) |  | ",
          "pass | gemm | 770.0 TFLOP/s, 10 % more than in the baseline | 700.0 TFLOP/s (good.json) |  | "}));
}

TEST(Baseline, AnotherDriverIsNamedFirst) {
  auto now = report(1);
  now.nodes[0].driver = "580.2";
  now.nodes[0].nccl = "2.30.1";
  now.measurements[0].busbw = 200e9;
  const auto rows = compare(baseline_of(report(1)), now, "good.json");
  EXPECT_EQ(rows[0].fix,
            "the driver was 570.1 and is now 580.2; NCCL was 2.28.9 and is now 2.30.1; if nothing was "
            "changed on purpose, report the node");
}

TEST(Baseline, OfOtherHardwareNothingIsCompared) {
  auto now = report(2);
  for (auto& node : now.nodes) node.gpu = "NVIDIA H100";
  now.measurements[0].busbw = 1e9;
  EXPECT_EQ(compared(report(4), now), (Lines{"unknown | good.json | not compared: the baseline is from 4 "
                                             "nodes with 4 × NVIDIA H200 (x86_64), but this is 2 "
                                             "nodes with 4 × NVIDIA H100 (x86_64) |  |  | "}));
}

TEST(Baseline, WhatWasNotMeasuredIsSaid) {
  auto now = report(1);
  now.figures.clear();
  EXPECT_EQ(faults(compare(baseline_of(report(1)), now, "good.json")),
            (Lines{"skip | good.json | 1 of its 2 values were not measured this time |  |  | "}));
}

class BaselineFile : public ::testing::Test {
 protected:
  ~BaselineFile() override { std::filesystem::remove(path); }
  std::string error_of(const std::string& content) const {
    EXPECT_TRUE(sys::write_file_atomically(path, content));
    const auto read = read_baseline(path);
    return read ? "" : render(read.error());
  }
  std::string path = ::testing::TempDir() + "nlaunch-baseline-test.json";
};

TEST_F(BaselineFile, IsReadAsItWasWritten) {
  const auto baseline = baseline_of(report());
  ASSERT_TRUE(sys::write_file_atomically(path, json_text(to_json(baseline))));
  const auto read = read_baseline(path);
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(to_json(*read), to_json(baseline));
}

TEST_F(BaselineFile, ThatIsNoneIsAnErrorWithWhatToType) {
  const auto hint =
      " [preflight.baseline]\nhint: create one with: nlaunch preflight --baseline save " + path + "\n";
  const auto missing = read_baseline(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(render(missing.error()), "error: cannot open '" + path + "': No such file or directory" + hint);
  EXPECT_EQ(error_of("{"), "error: '" + path + "' is not a baseline" + hint);
  EXPECT_EQ(error_of("[1]"), "error: '" + path + "' is not a baseline" + hint);
  EXPECT_EQ(error_of(R"({"format": "nlaunch preflight", "version": 1})"),
            "error: '" + path + "' is not a baseline" + hint);
  EXPECT_EQ(
      error_of(R"({"format": "nlaunch baseline", "version": 2})"),
      fmt::format("error: '{}' has version 2 of the format 'nlaunch baseline'; this nlaunch ({}) supports "
                  "1 [format.newer]\n"
                  "hint: update nlaunch, or use the one that wrote it\n",
                  path, version()));
  EXPECT_EQ(error_of(R"({"format": "nlaunch baseline", "version": 1})")
                .find("error: '" + path + "' is a damaged baseline: "),
            0U);
}

TEST(Baseline, TheLimitsAreFiveAndTwentyPercent) {
  const auto with = [](double value) {
    auto now = report(1);
    now.figures.clear();
    now.measurements[0].busbw = value;
    auto was = report(1);
    was.figures.clear();
    was.measurements[0].busbw = 1000e9;
    return lines(compare(baseline_of(was), now, "good.json")).at(0);
  };
  EXPECT_TRUE(with(951e9).starts_with("pass"));
  EXPECT_TRUE(with(949e9).starts_with("warn"));
  EXPECT_TRUE(with(801e9).starts_with("warn"));
  EXPECT_TRUE(with(799e9).starts_with("fail"));
  EXPECT_NE(with(996e9).find("996.0 GB/s, as in the baseline"), std::string::npos);
  EXPECT_NE(with(994e9).find("994.0 GB/s, 1 % less than in the baseline"), std::string::npos);
  EXPECT_NE(with(1004e9).find("1004.0 GB/s, as in the baseline"), std::string::npos);
  EXPECT_NE(with(1006e9).find("1006.0 GB/s, 1 % more than in the baseline"), std::string::npos);
}

TEST(Baseline, OfSmallerMessagesThereIsNoValue) {
  auto one = report(1);
  one.figures.clear();
  one.measurements[0].bytes = (16U << 20U) - 1;
  EXPECT_TRUE(baseline_of(one).values.empty());
  one.measurements[0].bytes = 16U << 20U;
  one.measurements[0].kind.clear();
  ASSERT_EQ(baseline_of(one).values.size(), 1U);
  EXPECT_EQ(baseline_of(one).values[0].name, "all_reduce of node 0 (nccl, 4 ranks) at 16MiB");
}

TEST(Baseline, PairsOfTheSearchAndTimesAreNotCompared) {
  auto one = report(1);
  one.figures.push_back({"pair", "", "n0", "n1", 9e9, "B/s"});
  one.figures.push_back({"write", "n0", "n0", "", 0.5, "s"});
  EXPECT_EQ(baseline_of(one).values.size(), 2U);
}

TEST(Baseline, HoldsTheMedianOfAll) {
  auto one = report(3);
  one.measurements[0].busbw = 100e9;
  one.measurements[2].busbw = 200e9;
  one.measurements[4].busbw = 300e9;
  EXPECT_EQ(baseline_of(one).values[0].value, 200e9);
  EXPECT_EQ(baseline_of(one).hardware.nodes, 3U);
  EXPECT_EQ(baseline_of(one).hardware.gpus, "4");
  one.nodes[1].gpus = 8;
  one.nodes[1].driver = "";
  EXPECT_EQ(baseline_of(one).hardware.gpus, "4, 8");
  EXPECT_EQ(baseline_of(one).driver, "570.1");
}

TEST(Baseline, AValueOfNothingIsNotHeldAgainstAnything) {
  auto was = baseline_of(report(1));
  was.values[0].value = 0;
  const auto rows = lines(compare(was, report(1), "good.json"));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].starts_with("pass | gemm"));
  EXPECT_EQ(rows[1], "skip | good.json | 1 of its 2 values were not measured this time |  |  | ");
}

TEST(Baseline, AMachineWithoutGpusIsCalledThat) {
  auto was = report(1);
  was.nodes[0].gpu = "";
  EXPECT_EQ(compared(was, report(1))[0],
            "unknown | good.json | not compared: the baseline is from 1 node with no GPU (x86_64), but this "
            "is 1 node with 4 × NVIDIA H200 (x86_64) |  |  | ");
}

}  // namespace
}  // namespace nlaunch::preflight
