#include "preflight/search/bisection.h"

#include <gtest/gtest.h>

#include "preflight/search/complaints.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

constexpr std::uint64_t kLarge = 128U << 20U;

/// Three nodes with two learners each, all in one world, and each node's own group.
struct Nodes : Machine {
  explicit Nodes(std::uint32_t nodes = 3) : Machine(2 * nodes, 0) {
    plan.node.count = nodes;
    plan.groups.clear();
    for (std::uint32_t i = 0; i < nodes; ++i) {
      add_group(fmt::format("node {}", i), plan::GroupKind::node, Backend::nccl, 2 * i, 2);
      plan.processes[2 * i].node = plan.processes[2 * i + 1].node = i;
      hosts.push_back(fmt::format("n{}", i));
    }
    add_group("world", plan::GroupKind::world, Backend::nccl, 0, 2 * nodes);
  }
  [[nodiscard]] Observations well() const {
    auto out = healthy();
    out.hosts = hosts;
    return out;
  }
  static std::size_t index_of(const Observations& observations, std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(observations.groups, name, &GroupTrial::name) -
                                    observations.groups.begin());
  }
  Lines hosts;
};

/// "GROUP BYTES" of each.
Lines complained(const Observations& observations) {
  Lines out;
  for (const auto& one : complaints(observations))
    out.push_back(fmt::format("{} {}", observations.groups[one.group].name, one.bytes));
  return out;
}

/// Nobody was done with this group from this size on.
void stop(Observations& observations, const std::string& group, std::size_t sizes, std::size_t rank = 0) {
  observations.reports[rank].groups[group].results.resize(sizes);
}

TEST(Complaints, AreNoneWhereAllIsWell) {
  const Nodes machine;
  EXPECT_EQ(complained(machine.well()), Lines{});
}

TEST(Complaints, AreOfTheSizeAtWhichAGroupStopped) {
  const Nodes machine;
  auto observations = machine.well();
  stop(observations, "world", 2);
  EXPECT_EQ(complained(observations), Lines{"world 22118400"});
  stop(observations, "world", 1, 3);
  EXPECT_EQ(complained(observations), Lines{"world 1048576"});
  stop(observations, "world", 0, 3);
  EXPECT_EQ(complained(observations), Lines{"world 8"});
  observations.went = false;
  EXPECT_EQ(complained(observations), Lines{});
}

TEST(Complaints, AreOfTheSizeOfWrongData) {
  const Nodes machine;
  auto observations = machine.well();
  observations.reports[2].groups["world"].results[3].wrong = 1;
  EXPECT_EQ(complained(observations), (Lines{fmt::format("world {}", kLarge)}));
}

TEST(Complaints, WithinNodesComeAloneAndAllOfThem) {
  const Nodes machine;
  auto observations = machine.well();
  stop(observations, "world", 2);
  stop(observations, "node 0", 1);
  observations.reports[4].groups["node 2"].results[0].wrong = 1;
  EXPECT_EQ(complained(observations), (Lines{"node 0 1048576", "node 2 8"}));
}

TEST(Complaints, OfTheSameRanksAreOne) {
  const Nodes machine;
  auto observations = machine.well();
  observations.reports[0].groups["node 0"].results[0].wrong = 1;
  observations.reports[0].groups["node 0, neighbours"].results[0].wrong = 1;
  EXPECT_EQ(complained(observations), Lines{"node 0 8"});
  observations.reports[0].groups["node 0"].results[0].wrong = 0;
  EXPECT_EQ(complained(observations), Lines{"node 0, neighbours 1048576"});
  observations.reports[0].groups["world"].results[1].wrong = 1;
  observations.reports[0].groups["world, neighbours"].results[0].wrong = 1;
  observations.reports[0].groups["node 0, neighbours"].results[0].wrong = 0;
  EXPECT_EQ(complained(observations), Lines{"world 1048576"});
}

TEST(Complaints, AreNoneWhereARankIsBlamedAlready) {
  const Nodes machine;
  auto observations = machine.well();
  stop(observations, "world", 2);
  observations.reports[5].end = "was killed by SIGSEGV";
  EXPECT_EQ(complained(observations), Lines{});
  observations.reports[5].end = "";
  observations.reports[5].groups["world"].joining = false;
  EXPECT_EQ(complained(observations), Lines{});
  observations.reports[5].groups.erase("world");
  EXPECT_EQ(complained(observations), Lines{});
}

TEST(Complaints, AreNoneOfWhatCouldNotBeTried) {
  const Nodes machine;
  auto observations = machine.well();
  stop(observations, "world", 2);
  observations.reports[0].errors = {{"join", "world", "unavailable", "no Gloo"}};
  EXPECT_EQ(complained(observations), Lines{});
  observations.reports[0].errors.clear();
  observations.groups[Nodes::index_of(observations, "world")].not_run = "not run";
  EXPECT_EQ(complained(observations), Lines{});
}

TEST(Complaints, AreOfAGroupBelowTheFloorOfTheSite) {
  Nodes machine;
  machine.plan.expected.all_reduce_busbw = {{2, VersionRange::parse(">1").value(), kLarge, 500e9, "site"}};
  EXPECT_EQ(complained(machine.well()), (Lines{fmt::format("world {}", kLarge)}));
  machine.plan.expected.all_reduce_busbw[0].min = 100e9;
  EXPECT_EQ(complained(machine.well()), Lines{});
  machine.plan.expected.all_reduce_busbw[0].min = 500e9;
  machine.set(0, "NCCL_P2P_DISABLE", "1");
  EXPECT_EQ(complained(machine.well()), Lines{}) << "the setting explains it";
}

TEST(Complaints, AtLevelDeepTheLargestGroupAcrossNodesIsTakenApart) {
  const Nodes machine;
  auto observations = machine.well();
  observations.level = PreflightLevel::deep;
  EXPECT_EQ(complained(observations), (Lines{fmt::format("world {}", kLarge)}));
  Nodes alone;
  alone.plan.groups.erase(alone.plan.groups.begin(), alone.plan.groups.end() - 1);
  auto of_one = alone.well();
  of_one.level = PreflightLevel::deep;
  EXPECT_EQ(complained(of_one).size(), 1U);
  const Nodes two(2);
  auto fewer = two.well();
  fewer.level = PreflightLevel::deep;
  EXPECT_EQ(complained(fewer), Lines{}) << "two are not enough to tell one from the others";
  observations.groups[Nodes::index_of(observations, "world")].backend = Backend::gloo;
  EXPECT_EQ(complained(observations), Lines{});
}

TEST(Dissect, TakesAGroupAcrossNodesApartByNode) {
  const Nodes machine;
  const auto observations = machine.well();
  const auto what = dissect(observations, {Nodes::index_of(observations, "world"), kLarge});
  EXPECT_TRUE(what.of_nodes);
  EXPECT_EQ(what.group, "world");
  EXPECT_EQ(what.bytes, kLarge);
  EXPECT_EQ(what.op, Collective::all_reduce);
  ASSERT_EQ(what.parts.size(), 3U);
  EXPECT_EQ(what.parts[1].name, "n1");
  EXPECT_EQ(what.parts[1].hosts, Lines{"n1"});
  EXPECT_EQ(what.parts[1].members, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(what.rules.slower, 1.5);
  EXPECT_EQ(what.rules.most_seconds, 0);
  EXPECT_EQ(what.floor, 0);
}

TEST(Dissect, TakesAGroupOfANodeApartByRank) {
  const Nodes machine;
  auto observations = machine.well();
  observations.reports[1].identity->bus_id.clear();
  observations.hosts.clear();
  const auto what = dissect(observations, {Nodes::index_of(observations, "node 0, neighbours"), 8});
  EXPECT_FALSE(what.of_nodes);
  EXPECT_EQ(what.op, Collective::send_recv);
  ASSERT_EQ(what.parts.size(), 2U);
  EXPECT_EQ(what.parts[0].name, observations.ranks[0].subject + ", 00000000:06:00.0");
  EXPECT_EQ(what.parts[1].name, observations.ranks[1].subject);
  EXPECT_EQ(what.parts[0].hosts, Lines{});
  EXPECT_TRUE(pair_trial(what, {0, 1}).neighbours);
}

TEST(Dissect, KnowsWhatTheSiteExpectsOfAPair) {
  Nodes machine;
  machine.plan.expected.all_reduce_busbw = {{2, VersionRange::parse("2").value(), kLarge, 50e9, "site"},
                                            {2, VersionRange::parse("3").value(), kLarge, 90e9, "site"},
                                            {2, VersionRange::parse("2").value(), 4096, 90e9, "site"}};
  const auto observations = machine.well();
  const auto what = dissect(observations, {Nodes::index_of(observations, "world"), kLarge});
  EXPECT_EQ(what.floor, 50e9);
  EXPECT_DOUBLE_EQ(what.rules.most_seconds, bus_bandwidth(Collective::all_reduce, kLarge, 1, 4) / 50e9);
}

TEST(Dissect, JudgesNoTimesOfProcessors) {
  const Machine machine(3, 0, false);
  const auto observations = machine.healthy();
  EXPECT_FALSE(dissect(observations, {0, 8}).rules.slower);
}

TEST(PairTrial, HasTheRanksOfBothParts) {
  const Nodes machine;
  const auto observations = machine.well();
  const auto what = dissect(observations, {Nodes::index_of(observations, "world"), kLarge});
  const auto trial = pair_trial(what, {2, 0});
  EXPECT_EQ(trial.name, "n2 and n0");
  EXPECT_EQ(trial.members, (std::vector<std::size_t>{4, 5, 0, 1}));
  EXPECT_EQ(trial.sizes, std::vector<std::uint64_t>{kLarge});
  EXPECT_FALSE(trial.neighbours);
  EXPECT_FALSE(trial.transport);
}

TEST(ReadTrial, IsWhatThePairShowed) {
  const Nodes machine;
  auto observations = machine.well();
  const auto index = Nodes::index_of(observations, "node 1");
  auto trial = read_trial(observations, index, {0, 1});
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->units, (UnitPair{0, 1}));
  EXPECT_EQ(trial->ranks, 2U);
  EXPECT_EQ(trial->trouble, "");
  EXPECT_DOUBLE_EQ(trial->seconds, observations.reports[2].groups["node 1"].results[0].seconds);
  observations.reports[2].end = "was killed by SIGSEGV";
  observations.reports[2].groups["node 1"].results.clear();
  observations.apart = true;
  trial = read_trial(observations, index, {0, 1});
  ASSERT_TRUE(trial);
  EXPECT_TRUE(trial->trouble.ends_with("its probe was killed by SIGSEGV"));
  EXPECT_EQ(trial->seconds, 0);
  observations.reports[2].errors = {{"join", "node 1", "unavailable", "no library"}};
  EXPECT_FALSE(read_trial(observations, index, {0, 1}));
}

/// Nodes "n0", "n1", ... or GPUs of one node, of two ranks each.
Bisection parts_of(std::size_t count, bool of_nodes = true, std::uint64_t bytes = kLarge) {
  Bisection out{.group = "world", .bytes = bytes, .of_nodes = of_nodes};
  for (std::size_t part = 0; part < count; ++part)
    out.parts.push_back({fmt::format("n{}", part), {2 * part, 2 * part + 1}, {fmt::format("host{}", part)}});
  return out;
}

/// 100 GB/s over each link take so long.
double seconds_at(double rate) {
  return bus_bandwidth(Collective::all_reduce, kLarge, 1, 4) / rate;
}

/// All pairs of so many units at 100 GB/s, but for those of one unit.
std::vector<Round> rounds_with(std::size_t units, std::size_t bad, double seconds,
                               const std::string& trouble = "") {
  std::vector<Round> rounds;
  for (;;) {
    const auto pairs = next_round(units, rounds, {});
    if (pairs.empty()) return rounds;
    Round round;
    for (const auto& pair : pairs) {
      const bool hit = pair.first == bad || pair.second == bad;
      round.push_back({pair, 4, hit ? seconds : seconds_at(100e9), hit ? trouble : ""});
    }
    rounds.push_back(std::move(round));
  }
}

TEST(SuspectRows, NameANodeThatIsSlowWithAllOthers) {
  const auto rows = suspect_rows(parts_of(5), rounds_with(5, 3, seconds_at(20e9)));
  EXPECT_EQ(lines(rows), (Lines{"fail | n3 | slow with 3 of 3 good partners: 20.0 GB/s, the median is 100.0 "
                                "GB/s at 128MiB | as fast as the others | do not use the node; check its "
                                "network cards, their cables and its PCIe links | admin",
                                "pass | world | 4 of 5 nodes are cleared: each worked well with another one; "
                                "the median is 100.0 GB/s at 128MiB |  |  | "}));
  EXPECT_EQ(rows[0].hosts, Lines{"host3"});
}

TEST(SuspectRows, NameAGpuThatFailsWithAllOthers) {
  EXPECT_EQ(lines(suspect_rows(parts_of(4, false, 8), rounds_with(4, 0, 0, "not done within 10s"))),
            (Lines{"fail | n0 | fails with 3 of 3 good partners: not done within 10s | works like the others "
                   "| do not use this GPU; check its links: nvidia-smi nvlink -s, nvidia-smi topo -m | admin",
                   "pass | world | 3 of 4 ranks are cleared: each worked well with another one |  |  | "}));
}

TEST(SuspectRows, NameALinkBetweenTwoThatAreGoodWithOthers) {
  auto rounds = rounds_with(6, 99, 0);
  auto& pair = rounds[0][1];
  ASSERT_EQ(pair.units, (UnitPair{2, 3}));
  pair.seconds = seconds_at(10e9);
  rounds.push_back({pair});
  const std::string rest =
      " | as good as with others | neither is to blame alone: report the path between them (cable, switch, "
      "routing) | admin";
  auto rows = lines(suspect_rows(parts_of(6), rounds));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0],
            "fail | n2 - n3 | slow with each other in 2 of 2 trials, both good with others: 10.0 GB/s, the "
            "median is 100.0 GB/s at 128MiB" +
                rest);
  EXPECT_EQ(rows[1],
            "pass | world | all 6 nodes work well in pairs; the median is 100.0 GB/s at 128MiB |  |  | ");
  for (auto* round : {&rounds[0], &rounds.back()}) {
    for (auto& trial : *round) {
      if (trial.units == UnitPair{2, 3}) trial.trouble = "no route";
    }
  }
  rows = lines(suspect_rows(parts_of(6), rounds));
  EXPECT_EQ(rows[0],
            "fail | n2 - n3 | fail with each other in 2 of 2 trials, both good with others: no route" + rest);
}

TEST(SuspectRows, OfTwoNeitherIsNamed) {
  EXPECT_EQ(lines(suspect_rows(parts_of(2), {})),
            (Lines{"unknown | n0 or n1 | two are not enough to tell which one breaks 'world' |  |  | "}));
}

TEST(SuspectRows, WithTooFewGoodPartnersNobodyIsNamed) {
  const std::vector<Round> slow{{{{0, 1}, 4, seconds_at(100e9)}, {{2, 3}, 4, seconds_at(10e9)}},
                                {{{1, 2}, 4, seconds_at(10e9)}, {{3, 4}, 4, seconds_at(10e9), "no route"}},
                                {{{4, 5}, 4, seconds_at(100e9)}, {{0, 6}, 4, seconds_at(100e9)}}};
  const auto rows = lines(suspect_rows(parts_of(7), slow));
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(
      rows[0],
      "unknown | n1 or n2 | too few good partners to tell which one is to blame: slow together |  |  | ");
  EXPECT_EQ(
      rows[1],
      "unknown | n2 or n3 | too few good partners to tell which one is to blame: slow together |  |  | ");
  EXPECT_EQ(rows[2],
            "unknown | n3 or n4 | too few good partners to tell which one is to blame: no route |  |  | ");
}

TEST(SuspectRows, WhereNothingWorksTheSiteIsToBlame) {
  const std::vector<Round> rounds{{{{0, 1}, 4, 0, "no route"}, {{2, 3}, 4, 0, "no route"}}};
  EXPECT_EQ(lines(suspect_rows(parts_of(4), rounds)),
            (Lines{"unknown | world | no two of its 4 nodes work together: suspect the settings or the site, "
                   "not a single one |  |  | "}));
}

TEST(SuspectRows, WhereAllAreSlowASlowerOneIsNotNamed) {
  auto what = parts_of(5);
  what.floor = 200e9;
  what.rules.most_seconds = seconds_at(200e9);
  EXPECT_EQ(lines(suspect_rows(what, rounds_with(5, 3, seconds_at(20e9)))),
            (Lines{"unknown | world | all pairs are slow, none more than the others; the median is 100.0 "
                   "GB/s at 128MiB; the site expects at least 200.0 GB/s: suspect the settings or the site, "
                   "not one of the nodes |  |  | "}));
  const auto rows = suspect_rows(what, rounds_with(5, 3, 0, "no route"));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].subject, "n3") << "one that fails is at fault even so";
}

TEST(SuspectRows, OfSmallMessagesNoRateIsTold) {
  const auto rows = lines(suspect_rows(parts_of(3, false, (1U << 20U) - 4), rounds_with(3, 99, 0)));
  EXPECT_EQ(rows, Lines{"pass | world | all 3 ranks work well in pairs |  |  | "});
  EXPECT_TRUE(lines(suspect_rows(parts_of(3, false, 1U << 20U), rounds_with(3, 99, 0)))[0].starts_with(
      "pass | world | all 3 ranks work well in pairs; the median is "));
}

TEST(PairFigures, AreThoseOfPairsThatCompleted) {
  const std::vector<Round> rounds{{{{0, 1}, 4, seconds_at(100e9)}, {{2, 3}, 4, 0, "no route"}},
                                  {{{1, 2}, 4, seconds_at(50e9)}}};
  auto figures = pair_figures(parts_of(4), rounds);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].what, "pair");
  EXPECT_EQ(figures[0].host, "");
  EXPECT_EQ(figures[0].from, "n0");
  EXPECT_EQ(figures[0].to, "n1");
  EXPECT_NEAR(figures[0].value, 100e9, 1);
  EXPECT_EQ(figures[0].unit, "B/s");
  EXPECT_NEAR(figures[1].value, 50e9, 1);
  EXPECT_EQ(pair_figures(parts_of(4, false), rounds)[1].host, "host1");
  auto what = parts_of(4, false);
  for (auto& part : what.parts) part.hosts.clear();
  EXPECT_EQ(pair_figures(what, rounds)[1].host, "");
  EXPECT_TRUE(pair_figures(parts_of(4, true, (1U << 20U) - 1), rounds).empty());
  EXPECT_EQ(pair_figures(parts_of(4, true, 1U << 20U), rounds).size(), 2U);
}

}  // namespace
}  // namespace nlaunch::preflight
