#include "bench/metrics.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace nlaunch::bench {
namespace {

using Values = std::map<std::string, std::vector<double>>;

const std::vector<plan::Metric> kMetrics{{"sync", R"(sync took ([\d.e+-]+)s)"}, {"loss", R"(loss (\S+))"}};

Values read(const std::vector<std::string_view>& blocks) {
  MetricReader reader(kMetrics);
  for (const auto block : blocks) reader.feed(block);
  reader.finish();
  return reader.values();
}

TEST(Metrics, AreTheFirstGroupOfEachLineThatFits) {
  EXPECT_EQ(read({"step 1 sync took 0.25s loss -1e-3\nnothing\nsync took 3s, then sync took 4s\n"}),
            (Values{{"sync", {0.25, 3}}, {"loss", {-1e-3}}}));
}

TEST(Metrics, AreReadOverTheEndsOfBlocks) {
  EXPECT_EQ(read({"sync to", "ok 1", "2s\r", "\nsync took 7s"}), (Values{{"sync", {12, 7}}}));
}

TEST(Metrics, OfAProgressBarAreReadEachTimeThatItIsDrawn) {
  EXPECT_EQ(read({"1/3 loss 3\r2/3 loss 2\r3/3 loss 1\n"}), (Values{{"loss", {3, 2, 1}}}));
}

TEST(Metrics, CountOnlyWholeFiniteNumbers) {
  EXPECT_EQ(read({"loss nan\nloss inf\nloss 1,5\nloss 2x\nsync took 1.2.3s\nloss 1e999\nloss 4\n"}),
            (Values{{"loss", {4}}}));
}

TEST(Metrics, AreNotLookedForBehindTheFirst64KiBOfALine) {
  const std::string filler(65536, 'x');
  EXPECT_EQ(read({"sync took 1s ", filler, filler, "loss 5", "\nloss 6\n"}),
            (Values{{"sync", {1}}, {"loss", {6}}}));
}

TEST(Metrics, PassOverBytesThatAreNoText) {
  EXPECT_EQ(read({std::string_view("\xff\xfe\0 loss 2\n", 11)}), (Values{{"loss", {2}}}));
}

TEST(Metrics, OfARunAreThoseOfAllItsLogs) {
  char name[] = "/tmp/nlaunch-metrics-XXXXXX";
  const std::filesystem::path run = ::mkdtemp(name);
  const auto write = [&](const char* file, const char* text) {
    std::filesystem::create_directories((run / file).parent_path());
    std::ofstream(run / file) << text;
  };
  write("attempt-0/logs/learner.0.log", "loss 1\nloss 9\n");
  write("attempt-0/logs/learner.1.log", "loss 2\n");
  write("attempt-1/logs/learner.0.log", "loss 4\n");
  write("attempt-10/logs/learner.0.log", "loss 3\n");
  write("attempt-2/logs/learner.0.log", "loss 3\n");
  write("attempt-0/nccl/learner.0.log", "loss 1000\n");
  write("attempt-0/logs/learner.0.txt", "loss 1000\n");
  const auto printed = summarized(read_printed(run, kMetrics));
  std::filesystem::remove_all(run);
  ASSERT_EQ(printed.size(), 1U);
  EXPECT_EQ(printed.at("loss").median, 3);
  EXPECT_EQ(printed.at("loss").values, 6U);
  // 1, 9, 4, 3, 3 of learner.0, and 2 of learner.1.
  EXPECT_EQ(printed.at("loss").first, 1.5);
  EXPECT_EQ(printed.at("loss").last, 2.5);
  EXPECT_NEAR(printed.at("loss").slope, -0.1, 1e-9);
}

TEST(Metrics, CountsThatDifferBetweenTheProcessesOfARoleAreTold) {
  const auto batches = [](double count) {
    return std::map<std::string, std::vector<double>>{{"batches", {count, count}}};
  };
  PrintedBy printed{{"learner.0", batches(120)},
                    {"learner.1", batches(120)},
                    {"learner.2", batches(119)},
                    {"learner.3", batches(120)},
                    {"engine.0", batches(7)}};
  EXPECT_EQ(uneven(printed),
            (std::vector<std::string>{"batches: 119 in learner.2, 120 in learner.0, learner.1 and 1 more"}));
  printed["learner.1"]["batches"] = {120, 121};  // a number that changes is no count
  EXPECT_TRUE(uneven(printed).empty());
  EXPECT_TRUE(uneven({{"learner.0", {{"loss", {0.5}}}}, {"learner.1", {{"loss", {0.25}}}}}).empty());
}

TEST(Metrics, OfAFolderThatIsNotThereAreNone) {
  EXPECT_TRUE(read_printed("/nowhere", kMetrics).empty());
}

}  // namespace
}  // namespace nlaunch::bench
