#include "preflight/search/ladder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "unit/preflight/allocation.h"

/// Small allocations with probes that play: what is reported of them, row by row.
namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;

class SmallAllocation : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "nlaunch-ladder.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Report examine(const Allocation& allocation, Options options = {}) {
    sys::Loop loop;
    options.progress = [this](const std::string& words) { told_.push_back(words); };
    const Examination request{.plan = allocation.plan,
                              .options = options,
                              .deadlines = {300ms, 300ms},
                              .folder = folder_,
                              .hosts = allocation.hosts,
                              .addresses = allocation.hosts,
                              .probes = [&](const ProbeStart& start) {
                                starts_.push_back(start.wanted);
                                folders_.push_back(std::filesystem::path(start.folder).filename());
                                return std::make_unique<PlayedProbes>(loop, allocation, start);
                              }};
    return preflight::examine(loop, request, findings_ ? *findings_ : allocation.findings());
  }
  /// "STATUS | SUBJECT | VALUE" of a check, times taken away.
  static Lines rows_of(const Report& report, const std::string& check) {
    Lines out;
    for (const auto& row : report.rows) {
      if (row.check != check) continue;
      const auto time = row.value.find(" in ");
      out.push_back(fmt::format("{} | {} | {}", name_of(row.status), row.subject,
                                row.status == Status::pass ? row.value.substr(0, time) : row.value));
    }
    return out;
  }

  std::string folder_;
  Lines told_;
  std::vector<std::vector<std::size_t>> starts_;
  Lines folders_;
  std::optional<std::vector<Findings>> findings_;
};

const Options kLadder{.level = PreflightLevel::standard, .ladder = true};

TEST_F(SmallAllocation, TheLadderClimbsFromOneGpuToAll) {
  const auto report = examine(Allocation(3, 2), kLadder);
  EXPECT_EQ(report.verdict, Status::pass);
  EXPECT_EQ(rows_of(report, "ladder"),
            (Lines{"pass | one GPU | 6 of 6 groups", "pass | one node | 3 of 3 groups",
                   "pass | two nodes | 1 of 1 groups", "pass | all | the plan's own groups"}));
  ASSERT_EQ(starts_.size(), 4U);
  EXPECT_EQ(starts_[0].size(), 6U);
  EXPECT_EQ(starts_[2], (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(folders_, (Lines{"one-gpu", "one-node", "two-nodes", "preflight"}));
  EXPECT_EQ(told_.front(), "ladder, starting with one GPU");
  EXPECT_EQ(told_[1], "ladder, one GPU: 6 groups");
  EXPECT_NE(std::ranges::find(told_, "8 groups of the plan"), told_.end());
}

TEST_F(SmallAllocation, TheLadderNamesTheNodeOfAPairThatFails) {
  Allocation allocation(4, 2);
  allocation.hang.insert(3);
  const auto report = examine(allocation, kLadder);
  const auto rungs = rows_of(report, "ladder");
  ASSERT_EQ(rungs.size(), 3U);
  EXPECT_EQ(rungs[2],
            "fail | two nodes | all_reduce node 2 and node 3: ranks 4, 5, 6, 7 arrived, but a collective did "
            "not complete: learner rank 4 (nid001002 GPU 0): not done within 20s; new at this rung: network "
            "cards, libfabric and NCCL's plugin, the switch between two nodes");
  const auto suspects = rows_of(report, "suspect");
  ASSERT_FALSE(suspects.empty());
  EXPECT_TRUE(suspects[0].starts_with("fail | nid001003 | fails with 3 of 3 good partners: ")) << suspects[0];
  EXPECT_EQ(rows_of(report, "send_recv"), Lines{}) << "the plan's own groups were not tried";
  EXPECT_TRUE(report.measurements.empty());
}

TEST_F(SmallAllocation, ARungWithoutGroupsIsSkipped) {
  const auto report = examine(Allocation(2, 1), kLadder);
  EXPECT_EQ(rows_of(report, "ladder"),
            (Lines{"pass | one GPU | 2 of 2 groups", "skip | one node | no node has two ranks in a group",
                   "skip | two nodes | there is only one node", "pass | all | the plan's own groups"}));
  const auto one = examine(Allocation(1, 2), kLadder);
  EXPECT_EQ(rows_of(one, "ladder"),
            (Lines{"pass | one GPU | 2 of 2 groups", "pass | one node | 1 of 1 groups",
                   "skip | two nodes | there is only one node", "pass | all | the plan's own groups"}));
}

TEST_F(SmallAllocation, TheLastOfAnOddNumberOfNodesIsTriedAlone) {
  EXPECT_EQ(examine(Allocation(5, 2), kLadder).verdict, Status::pass);
  ASSERT_EQ(starts_.size(), 4U);
  EXPECT_EQ(starts_[2], (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(SmallAllocation, RanksWithoutALibraryAreNoRung) {
  const Allocation allocation(2, 2);
  findings_ = allocation.findings();
  for (auto& node : *findings_) {
    for (auto& rank : node.ranks) rank.library = {};
  }
  EXPECT_EQ(rows_of(examine(allocation, kLadder), "ladder")[0], "skip | one GPU | no rank has a library");
}

TEST_F(SmallAllocation, AtLevelQuickNoProbeIsStarted) {
  const auto report = examine(Allocation(2, 2), {.level = PreflightLevel::quick});
  EXPECT_TRUE(starts_.empty());
  EXPECT_TRUE(report.measurements.empty());
  EXPECT_EQ(report.level, PreflightLevel::quick);
}

TEST_F(SmallAllocation, WithoutAnyProbeNothingIsTried) {
  const Allocation allocation(2, 2);
  findings_ = allocation.findings();
  for (auto& node : *findings_) {
    for (auto& rank : node.ranks) rank.no_probe = "it does not start there";
  }
  examine(allocation);
  EXPECT_TRUE(starts_.empty());
  findings_->front().ranks.front().no_probe.clear();
  const auto report = examine(allocation);
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0], std::vector<std::size_t>{0});
  EXPECT_EQ(rows_of(report, "all_reduce")[0], "skip | node 0 | not run: it does not start there");
}

TEST_F(SmallAllocation, WhatEachNodeFoundStandsWithItsName) {
  Allocation allocation(2, 2);
  allocation.plan.name = "grpo";
  allocation.plan.site = "lab";
  findings_ = allocation.findings();
  (*findings_)[1].rows = {failed("limits", "memlock", "8 MiB", "more", {"raise it", Responsible::admin})};
  (*findings_)[1].figures = {{"gemm", "", "GPU 0", "", 7e14, "FLOP/s"}};
  (*findings_)[0].fingerprints = {{7, "GPU 0", "H200", "a"}, {7, "GPU 1", "H200", "a"}};
  (*findings_)[1].fingerprints = {{7, "GPU 0", "H200", "b"}};
  (*findings_)[1].summary.gpu = "H200";
  const auto report = examine(allocation);
  EXPECT_EQ(report.rows.front().hosts, Lines{"nid001001"});
  EXPECT_EQ(report.figures.front().host, "nid001001");
  EXPECT_EQ(rows_of(report, "gemm-agreement").at(0).substr(0, 25), "fail | nid001001 GPU 0 | ");
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[1].gpu, "H200");
  EXPECT_EQ(report.verdict, Status::fail);
  EXPECT_EQ(report.plan, "grpo");
  EXPECT_EQ(report.site, "lab");
  EXPECT_GT(report.time, 1'700'000'000);
  EXPECT_FALSE(report.cancelled);
}

TEST_F(SmallAllocation, OfEachGroupItIsToldWhatTheSiteExpects) {
  const auto report = examine(Allocation(2, 2));
  const auto world = std::ranges::find_if(report.measurements, [](const Measurement& one) {
    return one.group == "learner world" && one.bytes == 128U << 20U;
  });
  ASSERT_NE(world, report.measurements.end());
  EXPECT_EQ(world->kind, "world");
  EXPECT_EQ(world->floor, Allocation::kFloor);
}

TEST_F(SmallAllocation, ASearchIsToldRoundByRound) {
  Allocation allocation(5, 2);
  allocation.slow_network[2] = 8;
  const auto report = examine(allocation);
  EXPECT_NE(std::ranges::find(told_, "searching for the culprit"), told_.end());
  EXPECT_NE(std::ranges::find(told_, "search round 1: 2 pairs"), told_.end());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/preflight/pairs-1/spec.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/preflight/pairs-4/spec.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/preflight/pairs-5"));
  EXPECT_EQ(std::ranges::count(report.figures, "pair", &Figure::what), 6);
}

TEST_F(SmallAllocation, AFolderThatCannotBeMadeIsTold) {
  const auto own = std::exchange(folder_, "/proc/none");
  const auto report = examine(Allocation(2, 2));
  const auto rung = examine(Allocation(2, 2), kLadder);
  folder_ = own;
  EXPECT_TRUE(starts_.empty());
  const auto rows = rows_of(report, "identity");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].starts_with("unknown | preflight directory | ")) << rows[0];
  EXPECT_EQ(report.verdict, Status::unknown);
  EXPECT_TRUE(rows_of(rung, "ladder").at(0).starts_with("unknown | one GPU | "));
}

TEST_F(SmallAllocation, MeasuresTrialsAlone) {
  const Allocation allocation(2, 2);
  sys::Loop loop;
  const Options options;
  const Examination request{.plan = allocation.plan,
                            .options = options,
                            .deadlines = {300ms, 300ms},
                            .folder = folder_,
                            .hosts = allocation.hosts,
                            .addresses = allocation.hosts,
                            .probes = [&](const ProbeStart& start) {
                              return std::make_unique<PlayedProbes>(loop, allocation, start);
                            }};
  std::vector<Rank> ranks;
  for (std::uint32_t node = 0; node < 2; ++node)
    std::ranges::move(allocation.ranks_of(node), std::back_inserter(ranks));
  GroupTrial trial{"mine", plan::GroupKind::world, Backend::nccl, {1, 2}, {4096}, false, ""};
  const auto measured = measure(loop, request, ranks, {trial});
  EXPECT_TRUE(measured.went);
  EXPECT_FALSE(measured.cancelled);
  EXPECT_EQ(worst(measured.rows), Status::pass);
  ASSERT_EQ(measured.reports.size(), 4U);
  EXPECT_EQ(measured.reports[1].groups.at("mine").results.size(), 1U);
  EXPECT_TRUE(measured.reports[0].groups.empty());
}

TEST(TopRung, SaysWhatIsNewWhereTheWholeFails) {
  EXPECT_EQ(line(top_rung({passed("a", "b", "c"), warned("a", "b", "c", "d", {"e"})}, 1500ms)),
            "pass | all | the plan's own groups in 1.50 s |  |  | ");
  EXPECT_EQ(line(top_rung({unknown("a", "b", "why")}, 1500ms)), "unknown | all | why |  |  | ");
  EXPECT_EQ(
      line(top_rung({unknown("a", "b", "why"), failed("x", "y", "z", "", {""})}, 1500ms)),
      "fail | all | x y: z; new at this rung: all nodes together, the split into roles, weight sync between "
      "different libraries | every rung works | see the rows of the group that failed; 'nccl-version' where "
      "roles differ; the suspects of the search | user");
}

}  // namespace
}  // namespace nlaunch::preflight
