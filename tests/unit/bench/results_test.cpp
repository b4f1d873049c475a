#include "bench/results.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"

namespace nlaunch::bench {
namespace {

/// One arm with one good repeat, of two that were asked for.
Bench one_repeat() {
  Bench bench{"small", "local", 7, 2, {}, {}, ""};
  bench.order.resize(1);
  bench.arms.push_back({{}, {}, {}, "", {Repeat{}}});
  return bench;
}

TEST(BenchResults, ABenchThatWasBrokenOffIsNoSuccess) {
  auto bench = one_repeat();
  EXPECT_EQ(code_of(bench), exit_code::ok);
  EXPECT_FALSE(to_json(bench).contains("broken_off"));
  bench.broken_off = "node node1: the connection to its agent was closed";
  EXPECT_EQ(code_of(bench), exit_code::bench_failed);
  EXPECT_EQ(to_json(bench).at("broken_off"), bench.broken_off);
}

TEST(BenchResults, WhatIsEachArmsOwnIsNoDifference) {
  auto bench = one_repeat();
  bench.arms.push_back(bench.arms.front());
  bench.arms[0].environments["learner"] = {{"SLURM_STEPID", "0"}, {"MASTER_PORT", "1"}, {"NCCL_PROTO", "LL"}};
  bench.arms[1].environments["learner"] = {
      {"SLURM_STEPID", "1"}, {"MASTER_PORT", "2"}, {"NCCL_PROTO", "Simple"}};
  const auto differ = differences(bench);
  ASSERT_EQ(differ.size(), 1);
  EXPECT_EQ(differ[0].name, "NCCL_PROTO");
  EXPECT_EQ(differ[0].values, (std::vector<std::string>{"LL", "Simple"}));
}

}  // namespace
}  // namespace nlaunch::bench
