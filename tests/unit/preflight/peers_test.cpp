#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

struct Rig {
  plan::Plan plan{};
  Observations observations{.plan = plan};

  void pairs(const std::string& host, int gpus, double value) {
    for (int a = 0; a < gpus; ++a) {
      for (int b = 0; b < gpus; ++b) {
        if (a != b) add("p2p", host, gpu(a), gpu(b), value + a, "B/s");
      }
    }
  }
  void gemms(const std::string& host, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      add("gemm", host, gpu(static_cast<int>(i)), "", values[i] * 1e12, "FLOP/s");
  }
  void add(const std::string& what, const std::string& host, const std::string& from, const std::string& to,
           double value, const std::string& unit) {
    observations.figures.push_back({what, host, from, to, value, unit});
  }
  void set(const std::string& host, const std::string& from, const std::string& to, double value) {
    for (auto& figure : observations.figures) {
      if (figure.host == host && figure.from == from && figure.to == to) figure.value = value;
    }
  }
  static std::string gpu(int number) { return fmt::format("GPU {}", number); }
};

const std::string kLinks =
    " | nvidia-smi topo -m and nvidia-smi nvlink -s show its links; report the node | admin";

TEST(Peers, EqualOnesPassWithTheirRange) {
  Rig rig;
  rig.pairs("", 4, 390e9);
  rig.gemms("", {700, 702, 699, 701});
  EXPECT_EQ(lines(run_check("peers", rig.observations)),
            (Lines{"pass | gemm | 4: 699.0 TFLOP/s to 702.0 TFLOP/s, median 701.0 TFLOP/s |  |  | ",
                   "pass | p2p | 12: 390.0 GB/s to 390.0 GB/s, median 390.0 GB/s |  |  | "}));
}

TEST(Peers, OneSlowPairIsNamedAndItsGpusAreNot) {
  Rig rig;
  rig.pairs("", 8, 390e9);
  rig.set("", "GPU 2", "GPU 5", 38e9);
  EXPECT_EQ(lines(run_check("peers", rig.observations)),
            (Lines{"fail | p2p GPU 2 → GPU 5 | 38.0 GB/s, 10 % of the median | at least 70 % of the median "
                   "of 56 (390.0 GB/s)" +
                   kLinks}));
}

TEST(Peers, ASlowGpuIsNamedOnceForAllOfItsPairs) {
  Rig rig;
  rig.pairs("node7", 4, 390e9);
  for (int other = 0; other < 4; ++other) {
    rig.set("node7", "GPU 3", Rig::gpu(other), 40e9);
    rig.set("node7", Rig::gpu(other), "GPU 3", 41e9);
  }
  const auto rows = run_check("peers", rig.observations);
  EXPECT_EQ(lines(rows), (Lines{"fail | p2p of GPU 3 | 41.0 GB/s at best, 11 % of the median | at least 70 % "
                                "of the median of 12 (390.0 GB/s)" +
                                kLinks}));
  EXPECT_EQ(rows.front().hosts, std::vector<std::string>{"node7"});
}

TEST(Peers, ALittleSlowIsAWarning) {
  Rig rig;
  rig.gemms("", {700, 700, 560, 700});
  EXPECT_EQ(lines(run_check("peers", rig.observations)),
            (Lines{"warn | gemm GPU 2 | 560.0 TFLOP/s, 80 % of the median | at least 85 % of the median of 4 "
                   "(700.0 TFLOP/s) | nvidia-smi -q -d PERFORMANCE,POWER shows what limits its clock; report "
                   "the node | admin"}));
}

TEST(Peers, OfThreeNobodyFails) {
  Rig rig;
  rig.gemms("", {700, 100, 700});
  const auto rows = run_check("peers", rig.observations);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].status, Status::warn);
  EXPECT_EQ(rows[0].expected, "at least 85 % of the median of only 3 (700.0 TFLOP/s)");
}

TEST(Peers, OfTwoNothingIsSaid) {
  Rig rig;
  rig.gemms("", {700, 100});
  rig.pairs("", 2, 390e9);
  EXPECT_EQ(lines(run_check("peers", rig.observations)), Lines{});
}

TEST(Peers, LinksOfTwoKindsAreNotHeldAgainstEachOther) {
  Rig rig;  // two bridges, and PCIe between them
  rig.pairs("", 4, 200e9);
  for (const auto* from : {"GPU 0", "GPU 1"}) {
    for (const auto* to : {"GPU 2", "GPU 3"}) rig.set("", from, to, 90e9);
  }
  for (const auto* from : {"GPU 2", "GPU 3"}) {
    for (const auto* to : {"GPU 0", "GPU 1"}) rig.set("", from, to, 230e9);
  }
  rig.set("", "GPU 0", "GPU 1", 90e9);
  EXPECT_EQ(lines(run_check("peers", rig.observations)),
            (Lines{"skip | p2p | not judged: 5 of 12 are far below the median, so they are not all of the "
                   "same kind (90.0 GB/s to 230.0 GB/s, median 200.0 GB/s) |  |  | "}));
}

TEST(Peers, TheSamePairOfOtherNodesComesFirst) {
  Rig rig;  // GPU 3 is far from the others on every node, and farther on one
  for (const auto* host : {"a", "b", "c", "d", "e"}) {
    rig.gemms(host, {700, 700, 700, 400});
  }
  rig.set("d", "GPU 3", "", 200e12);
  const auto rows = run_check("peers", rig.observations);
  EXPECT_EQ(lines(rows), (Lines{"fail | gemm GPU 3 | 200.0 TFLOP/s, 50 % of the median | at least 70 % of "
                                "the median of 5 (400.0 TFLOP/s) | nvidia-smi -q -d PERFORMANCE,POWER shows "
                                "what limits its clock; report the node | admin"}));
  EXPECT_EQ(rows.front().hosts, std::vector<std::string>{"d"});
}

TEST(Peers, NodesOfAnotherModelAreNoPeers) {
  Rig rig;
  rig.observations.nodes = {{"a", "x86_64", "H200", 4, "", ""}, {"b", "x86_64", "L40S", 4, "", ""}};
  rig.gemms("a", {700, 700, 700, 700});
  rig.gemms("b", {200, 200, 200, 200});
  EXPECT_EQ(faults(run_check("peers", rig.observations)), Lines{});
}

TEST(Peers, PairsOfNodesAndClocksAreLeftToOthers) {
  Rig rig;
  for (int i = 0; i < 8; ++i) {
    rig.add("pair", "", fmt::format("n{}", i), "n9", i == 0 ? 1e9 : 20e9, "B/s");
    rig.add("clock", "", fmt::format("n{}", i), "", i == 0 ? 1 : 1e-5, "s");
  }
  EXPECT_EQ(lines(run_check("peers", rig.observations)), Lines{});
}

std::vector<Status> statuses(const Rig& rig) {
  std::vector<Status> out;
  for (const auto& row : run_check("peers", rig.observations)) out.push_back(row.status);
  return out;
}

TEST(Peers, TheLimitsAreSharesOfTheMedian) {
  const auto with = [](double value) {
    Rig rig;
    rig.gemms("", {1000, 1000, 1000, value});
    return statuses(rig);
  };
  EXPECT_EQ(with(850), std::vector{Status::pass});
  EXPECT_EQ(with(849), std::vector{Status::warn});
  EXPECT_EQ(with(700), std::vector{Status::warn});
  EXPECT_EQ(with(699), std::vector{Status::fail});
}

TEST(Peers, OneOfThreeIsRareAndTwoOfFiveAreNot) {
  Rig rig;
  rig.gemms("", {1000, 1000, 1000, 1000, 500, 500});
  EXPECT_EQ(statuses(rig), (std::vector{Status::fail, Status::fail}));
  Rig more;
  more.gemms("", {1000, 1000, 1000, 500, 500});
  EXPECT_EQ(statuses(more), std::vector{Status::skip});
}

TEST(Peers, FourNodesMakeThePeersOfAPlace) {
  const auto with = [](int nodes) {
    Rig rig;  // the last GPU of each node is slow, and one of them slower still
    for (int node = 0; node < nodes; ++node) rig.gemms(fmt::format("n{}", node), {1000, 1000, 1000, 400});
    rig.set("n0", "GPU 3", "", 300e12);
    return lines(run_check("peers", rig.observations));
  };
  const auto four = with(4);
  ASSERT_EQ(four.size(), 1U);
  EXPECT_TRUE(
      four[0].starts_with("warn | gemm GPU 3 | 300.0 TFLOP/s, 75 % of the median | at least 85 % of the "
                          "median of 4 (400.0 TFLOP/s)"))
      << four[0];
  const auto three = with(3);
  ASSERT_EQ(three.size(), 3U) << "all GPUs are held against each other";
  EXPECT_TRUE(
      three[0].starts_with("fail | gemm GPU 3 | 300.0 TFLOP/s, 30 % of the median | at least 70 % of the "
                           "median of 12 (1000.0 TFLOP/s)"))
      << three[0];
}

TEST(Peers, PlacesOfTooFewNodesAreHeldAgainstEachOther) {
  Rig rig;
  for (const auto* host : {"a", "b", "c", "d"}) rig.gemms(host, {700, 700});
  rig.add("gemm", "a", "GPU 2", "", 300e12, "FLOP/s");
  rig.add("gemm", "b", "GPU 3", "", 310e12, "FLOP/s");
  rig.add("gemm", "c", "GPU 4", "", 305e12, "FLOP/s");
  EXPECT_EQ(faults(run_check("peers", rig.observations)), Lines{});
}

TEST(Peers, AGpuWithOneFastPairIsNotSlow) {
  Rig rig;
  rig.pairs("n1", 4, 390e9);
  for (int other = 0; other < 3; ++other) {
    rig.set("n1", "GPU 3", Rig::gpu(other), 40e9);
    rig.set("n1", Rig::gpu(other), "GPU 3", other == 2 ? 390e9 : 41e9);
  }
  const auto rows = run_check("peers", rig.observations);
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0).status, Status::skip);
}

TEST(Peers, SlowGpusAndOtherSlowLinksAreBothTold) {
  Rig rig;
  rig.pairs("", 8, 390e9);
  for (int other = 0; other < 8; ++other) {
    rig.set("", "GPU 7", Rig::gpu(other), 40e9);
    rig.set("", Rig::gpu(other), "GPU 7", 40e9);
  }
  rig.set("", "GPU 0", "GPU 1", 300e9);
  const auto rows = lines(run_check("peers", rig.observations));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].starts_with("fail | p2p of GPU 7 | 40.0 GB/s at best, 10 % of the median"));
  EXPECT_TRUE(rows[1].starts_with(
      "warn | p2p GPU 0 → GPU 1 | 300.0 GB/s, 77 % of the median | at least 85 % of the median of 56"));
}

TEST(Peers, CopiesWithTheHostAreHeldAgainstEachOtherToo) {
  for (const auto* what : {"host_to_device", "device_to_host"}) {
    Rig rig;
    for (int gpu = 0; gpu < 4; ++gpu) rig.add(what, "", Rig::gpu(gpu), "", gpu == 2 ? 10e9 : 50e9, "B/s");
    EXPECT_EQ(statuses(rig), std::vector{Status::fail}) << what;
  }
}

TEST(Peers, NodesThatNobodyDescribedAreOfOneKind) {
  Rig rig;
  rig.observations.nodes = {{"a", "x86_64", "H200", 4, "", ""}};
  rig.gemms("a", {700, 700});
  rig.gemms("b", {200, 200});
  rig.gemms("c", {200});
  EXPECT_EQ(lines(run_check("peers", rig.observations)),
            Lines{"pass | gemm | 3: 200.0 TFLOP/s to 200.0 TFLOP/s, median 200.0 TFLOP/s |  |  | "});
}

}  // namespace
}  // namespace nlaunch::preflight
