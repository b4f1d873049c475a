#include "bench/trials.h"

#include <gtest/gtest.h>

namespace nlaunch::bench {
namespace {

using preflight::GroupTrial;
using preflight::Measured;

GroupTrial trial(const std::string& name, std::vector<std::size_t> members) {
  GroupTrial out;
  out.name = name;
  out.members = std::move(members);
  out.workloads = {{"step", {{Collective::all_reduce, 64, DataType::f32, 2}}}};
  return out;
}

/// Each rank has done the group's workload.
Measured done(const std::string& group, const std::vector<std::vector<double>>& seconds) {
  Measured out;
  for (const auto& steps : seconds) {
    preflight::RankReport report;
    report.groups[group].workloads = {{"step", 0, steps}};
    out.reports.push_back(std::move(report));
  }
  out.went = true;
  return out;
}

TEST(ReadRepeat, TakesTheSlowestRankOfEachStepAndTheirMedian) {
  const auto repeat = read_repeat({trial("world", {0, 1})}, done("world", {{1, 5, 3}, {2, 4, 1}}));
  EXPECT_EQ(repeat.failure, "");
  ASSERT_EQ(repeat.timings.size(), 1);
  EXPECT_EQ(repeat.timings[0].seconds, 3);
  EXPECT_EQ(repeat.timings[0].ranks, 2);
}

TEST(ReadRepeat, LeavesOutWrongData) {
  auto measured = done("world", {{1}, {1}});
  measured.reports[1].groups["world"].workloads[0].wrong = 3;
  measured.rows = {preflight::failed("all_reduce", "world", "3 elements are wrong", "", {"x"})};
  const auto repeat = read_repeat({trial("world", {0, 1})}, measured);
  EXPECT_TRUE(repeat.timings.empty());
  EXPECT_EQ(repeat.failure, "world: 3 elements are wrong");
}

TEST(ReadRepeat, SaysWhatWasNotRun) {
  auto not_run = trial("world", {0, 1});
  not_run.not_run = "not run: its ranks load different versions of NCCL";
  Measured measured;
  measured.reports.resize(2);
  EXPECT_EQ(read_repeat({not_run}, measured).failure,
            "world: not run: its ranks load different versions of NCCL");
}

TEST(BusBandwidth, IsOfTheWholeStep) {
  const Workload work{"step", {{Collective::all_reduce, 100, DataType::f32, 2}, {Collective::broadcast, 50}}};
  EXPECT_EQ(bus_bandwidth(work, 2, 4), (2 * 150 + 50) / 2.0);
  EXPECT_EQ(bus_bandwidth(work, 0, 4), 0);
}

TEST(TextOf, NamesEachChoiceOfTheStepOnce) {
  const Chosen chosen{"world",
                      {{Collective::all_reduce, 64, "Ring", "LL", 2},
                       {Collective::all_reduce, 128, "Ring", "LL", 2},
                       {Collective::all_reduce, 1024, "Tree", "Simple", 0},
                       {Collective::broadcast, 64, "Ring", "LL128", 4}},
                      {"P2P"}};
  const auto of = [](Collective op, std::uint64_t bytes) { return Operation{op, bytes, DataType::f32, 1}; };
  const std::vector step{of(Collective::all_reduce, 64), of(Collective::all_reduce, 128),
                         of(Collective::all_reduce, 1024)};
  EXPECT_EQ(text_of(chosen, step), "Ring/LL 2ch, Tree/Simple, over P2P");
  EXPECT_EQ(text_of(chosen, {of(Collective::broadcast, 64)}), "Ring/LL128 4ch, over P2P");
  EXPECT_EQ(text_of({}, step), "");
}

}  // namespace
}  // namespace nlaunch::bench
