#include "bench/answer.h"

#include <gtest/gtest.h>

namespace nlaunch::bench {
namespace {

using Sentences = std::vector<std::string>;

/// Five times around a median, in seconds, none of them more than 1 % away.
std::vector<double> around(double median) {
  return {median * 0.99, median * 0.995, median, median * 1.005, median * 1.01};
}

/// Times that vary by a factor of two.
std::vector<double> scattered(double median) {
  return {median * 0.7, median * 0.8, median, median * 1.2, median * 1.4};
}

/// A bench of one group, in which each arm has measured some workloads.
class Measured {
 public:
  explicit Measured(std::uint32_t repeats = 5) { bench_.repeats = repeats; }
  Measured& arm(const std::string& name) {
    bench_.arms.push_back({{name, {}, {}, {}}, workloads_, {}, "", std::vector<Repeat>(bench_.repeats)});
    bench_.order.resize(bench_.order.size() + bench_.repeats);
    return *this;
  }
  /// For the arms from now on.
  Measured& workload(const std::string& name, std::vector<Operation> step, Targets targets = {}) {
    workloads_.push_back({{.name = name, .step = std::move(step)}, {}, targets, ""});
    return *this;
  }
  /// Of the last arm; in seconds, one for each repeat that was good.
  Measured& times(const std::string& workload, const std::vector<double>& seconds,
                  const std::string& group = "world") {
    for (std::size_t i = 0; i < seconds.size(); ++i)
      last().repeats[i].timings.push_back({workload, group, 4, Backend::nccl, false, seconds[i]});
    return *this;
  }
  Measured& two_ranks(const std::string& workload, double seconds) {
    for (auto& repeat : last().repeats)
      repeat.timings.push_back({workload, "world", 2, Backend::nccl, true, seconds});
    return *this;
  }
  Measured& failed(std::size_t repeat, const std::string& why) {
    last().repeats[repeat] = {{}, {}, why};
    return *this;
  }
  Measured& refused(const std::string& why) {
    last().refused = why;
    last().repeats.clear();
    bench_.order.resize(bench_.order.size() - bench_.repeats);
    return *this;
  }
  Measured& stopped(std::size_t after, const std::string& why) {
    bench_.order.resize(after);
    bench_.broken_off = why;
    return *this;
  }
  [[nodiscard]] Sentences said() const { return answer(bench_); }

 private:
  ArmResult& last() { return bench_.arms.back(); }
  Bench bench_{"small", "local", 7, 5, {}, {}, ""};
  std::vector<plan::BenchWorkload> workloads_;
};

const std::vector<Operation> kLarge{{Collective::all_reduce, 1U << 30U}};
const std::vector<Operation> kSmall{{Collective::broadcast, 64, DataType::bf16, 80}};
const std::vector<Operation> kMixed{{Collective::all_reduce, 1U << 20U}, {Collective::broadcast, 8}};

TEST(BenchAnswer, OneArmIsMeasured) {
  Measured one;
  one.workload("large", kLarge).arm("as planned").times("large", around(0.01));
  EXPECT_EQ(one.said(),
            Sentences{"large (all_reduce, 1GiB) takes 10.00 ms (95 % confidence interval 9.90 ms to "
                      "10.10 ms), a bus bandwidth of 161.1 GB/s"});
  one.workload("small", kSmall).workload("mixed", kMixed);
  Measured several;
  several.workload("large", kLarge).workload("small", kSmall).workload("mixed", kMixed).arm("as planned");
  several.times("large", around(0.01)).times("small", around(2e-4)).times("mixed", around(1e-3));
  EXPECT_EQ(several.said(),
            Sentences{"3 measurements, from 200.0 µs for small (80 × broadcast, 64B) to 10.00 ms for "
                      "large (all_reduce, 1GiB)"});
}

TEST(BenchAnswer, TheLargestDifferenceComesFirstAndTheOthersAreCounted) {
  Measured two;
  two.workload("large", kLarge).workload("small", kSmall).workload("mixed", kMixed);
  two.arm("nccl=2.26").times("large", around(0.01)).times("small", around(1)).times("mixed", scattered(1));
  two.arm("nccl=2.27").times("large", around(0.0092)).times("small", around(1)).times("mixed", scattered(1));
  EXPECT_EQ(two.said(),
            Sentences{"nccl=2.27 is 8.0 % faster (95 % confidence interval 6.6 to 9.4 %) than 2.26 for large "
                      "(all_reduce, 1GiB); no difference in the other 2 comparisons"});
}

TEST(BenchAnswer, WhatAnArmLosesElsewhereIsSaidToo) {
  Measured two;
  two.workload("large", kLarge).workload("small", kSmall).workload("mixed", kMixed);
  two.arm("A").times("large", around(0.01)).times("small", around(1)).times("mixed", around(1));
  two.arm("B").times("large", around(0.02)).times("small", around(0.9)).times("mixed", {1, 1});
  EXPECT_EQ(
      two.said(),
      Sentences{
          "B is 100.0 % slower (95 % confidence interval 97.0 to 103.0 %) than A for large (all_reduce, "
          "1GiB), and 10.0 % faster (confidence interval 8.6 to 11.3 %) for small (80 × broadcast, 64B); "
          "not judged in the other comparison"});
}

TEST(BenchAnswer, OfSeveralArmsEachIsComparedWithTheFirst) {
  Measured several;
  several.workload("large", kLarge).workload("mixed", kMixed);
  several.arm("A").times("large", around(1)).times("mixed", around(1));
  several.arm("B").times("large", around(0.9)).times("mixed", around(1));
  several.arm("C").times("large", around(0.5)).times("mixed", around(0.95));
  EXPECT_EQ(
      several.said(),
      Sentences{"C is 50.0 % faster (95 % confidence interval 49.2 to 50.7 %) than A for large (all_reduce, "
                "1GiB); in the other 3 comparisons: 2 faster, 1 no difference"});
}

TEST(BenchAnswer, WithoutADifferenceTheSmallestThatWouldHaveBeenSeenIsSaid) {
  Measured one;
  one.workload("mixed", kMixed).arm("A").times("mixed", around(1)).arm("B").times("mixed", around(1));
  EXPECT_EQ(one.said(),
            Sentences{"no difference found between A and B for mixed; the smallest detectable difference "
                      "was 1.5 %"});
  Measured several;
  several.workload("large", kLarge).workload("mixed", kMixed).workload("small", kSmall);
  for (const auto* name : {"A", "B", "C"})
    several.arm(name).times("large", around(1)).times("mixed", scattered(1)).times("small", {1, 1, 1});
  EXPECT_EQ(several.said(),
            Sentences{"no difference found among the 3 arms in 4 comparisons; the smallest detectable "
                      "difference was 1.5 to 71.4 %; 2 comparisons not judged"});
}

TEST(BenchAnswer, WhatTwoArmsHaveInCommonIsNamedOnce) {
  const auto between = [](const std::string& a, const std::string& b) {
    Measured two;
    const auto said =
        two.workload("mixed", kMixed).arm(a).times("mixed", {1}).arm(b).times("mixed", {1}).said()[0];
    return said.substr(0, said.find(" were "));
  };
  EXPECT_EQ(between("A=1", "A=2"), "A=1 and 2");
  EXPECT_EQ(between("A=", "A=2"), "A= and 2");
  EXPECT_EQ(between("A=1", "A="), "A=1 and A=");
  EXPECT_EQ(between("A=1", "B=1"), "A=1 and B=1");
  EXPECT_EQ(between("A=1, B=1", "A=1, B=2"), "A=1, B=1 and A=1, B=2");
}

TEST(BenchAnswer, TooFewRepeatsCompareNothing) {
  Measured two(1);
  two.workload("mixed", kMixed).arm("A").times("mixed", {1}).arm("B").times("mixed", {2});
  EXPECT_EQ(two.said(), Sentences{"A and B were not compared: that takes at least 5 good repeats of each"});
}

TEST(BenchAnswer, AnArmThatFailedComesFirst) {
  Measured two;
  two.workload("mixed", kMixed).arm("A").times("mixed", around(1)).arm("B");
  for (std::size_t i = 0; i < 5; ++i) two.failed(i, i < 3 ? "wrong data" : "timeout");
  EXPECT_EQ(two.said(),
            (Sentences{"B failed in all 5 repeats: wrong data (and 1 other cause)",
                       "mixed takes 1.00 s (95 % confidence interval 990.00 ms to 1.01 s) with A, a bus "
                       "bandwidth of 0.0 GB/s"}));
  two.arm("C").refused("the preload does not exist");
  EXPECT_EQ(two.said()[0],
            "B failed in all 5 repeats: wrong data (and 1 other cause); 1 other arm failed as well");
  Measured alone(1);
  alone.arm("as planned").failed(0, "timeout");
  EXPECT_EQ(alone.said(), Sentences{"the only repeat failed: timeout"});
  Measured refused;
  refused.arm("as planned").refused("no such library");
  EXPECT_EQ(refused.said(), Sentences{"the benchmark could not be started: no such library"});
}

TEST(BenchAnswer, RepeatsThatFailedComeAfterWhatTheOthersShow) {
  Measured two;
  two.workload("mixed", kMixed).arm("A").times("mixed", around(1)).arm("B").times("mixed", {1, 1, 1, 1});
  two.failed(4, "timeout");
  EXPECT_EQ(two.said(), (Sentences{"A and B were not compared: that takes at least 5 good repeats of each",
                                   "B failed in 1 of 5 repeats: timeout"}));
}

TEST(BenchAnswer, MissedTargetsComeBeforeComparisons) {
  Measured two;
  two.workload("mixed", kMixed, {.budget = 0.9}).workload("large", kLarge, {.bus_bandwidth = 2e11});
  two.arm("A").times("mixed", around(1)).times("large", around(0.01));
  EXPECT_EQ(two.said()[0],
            "2 of 2 targets missed, by most: large (all_reduce, 1GiB) reaches 161.1 GB/s, at least "
            "200.0 GB/s");
  two.arm("B").times("mixed", around(0.8)).times("large", around(0.001));
  EXPECT_EQ(two.said()[0],
            "2 of 4 targets missed, by most: large (all_reduce, 1GiB) reaches 161.1 GB/s with A, at "
            "least 200.0 GB/s");
  EXPECT_TRUE(two.said()[1].starts_with("B is 90.0 % faster ")) << two.said()[1];
  Measured one;
  one.workload("mixed", kMixed, {.budget = 0.9}).arm("as planned").times("mixed", around(1));
  EXPECT_EQ(one.said()[0], "the target was missed: mixed takes 1.00 s, at most 900.00 ms");
  Measured scales;
  scales.workload("large", kLarge, {.scaling = 0.95}).arm("as planned").times("large", around(0.01));
  scales.two_ranks("large", 0.005);
  EXPECT_EQ(scales.said()[0],
            "the target was missed: large (all_reduce, 1GiB) reaches 75 % of the bus bandwidth of two "
            "ranks, at least 95 %");
}

TEST(BenchAnswer, TargetsThatWereMetAreTheAnswerOfASingleArm) {
  Measured one;
  one.workload("mixed", kMixed, {.budget = 2}).arm("as planned").times("mixed", around(1));
  EXPECT_EQ(one.said()[0], "the target was met");
  Measured two;
  two.workload("mixed", kMixed, {.budget = 2, .scaling = 0.5});
  two.arm("A").times("mixed", around(1)).arm("B").times("mixed", around(1));
  EXPECT_EQ(two.said(),
            (Sentences{"no difference found between A and B for mixed; the smallest detectable difference "
                       "was 1.5 %",
                       "2 of 4 targets met, 2 not measured"}));
}

TEST(BenchAnswer, AGroupIsNamedWhereAWorkloadHasSeveral) {
  Measured two;
  two.workload("mixed", kMixed);
  two.arm("A").times("mixed", around(1), "node 0").times("mixed", around(1), "world");
  two.arm("B").times("mixed", around(1), "node 0").times("mixed", around(0.5), "world");
  EXPECT_EQ(two.said(),
            Sentences{"B is 50.0 % faster (95 % confidence interval 49.2 to 50.7 %) than A for mixed over "
                      "world; no difference in the other comparison"});
}

TEST(BenchAnswer, ManyComparisonsShowSomeDifferencesByChance) {
  const auto said_of = [](double first) {
    Measured many;
    for (int i = 0; i < 40; ++i) many.workload(fmt::format("w{}", i), kMixed);
    for (const auto* name : {"A", "B"}) {
      many.arm(name);
      for (int i = 0; i < 40; ++i)
        many.times(fmt::format("w{}", i), around(i == 0 && *name == 'B' ? first : 1));
    }
    return many.said();
  };
  EXPECT_EQ(said_of(1),
            Sentences{"no difference found between A and B in 40 comparisons; the smallest detectable "
                      "difference was 1.5 %"});
  const auto differs = said_of(0.5);
  ASSERT_EQ(differs.size(), 2);
  EXPECT_EQ(differs[1], "of 40 comparisons, about 2 show a difference by chance");
}

TEST(BenchAnswer, ABenchThatWasStoppedSaysSoFirst) {
  Measured one;
  one.workload("mixed", kMixed).arm("as planned").times("mixed", {1, 1}).stopped(2, "node node1: no answer");
  EXPECT_EQ(one.said(), (Sentences{"stopped after 2 of 5 repeats: node node1: no answer",
                                   "mixed takes 1.00 s, a bus bandwidth of 0.0 GB/s"}));
  Measured interrupted;
  interrupted.arm("as planned").stopped(0, "");
  EXPECT_EQ(interrupted.said(), Sentences{"stopped after 0 of 5 repeats"});
}

}  // namespace
}  // namespace nlaunch::bench
