#include "bench/runs.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"

namespace nlaunch::bench {
namespace {

RunRecord good(double seconds, double loss) {
  RunRecord run;
  run.outcome = "finished";
  run.seconds = seconds;
  run.metrics["loss"] = {.median = loss, .values = 3, .first = loss + 1, .last = loss - 1};
  return run;
}

RunRecord bad(double seconds) {
  RunRecord run;
  run.outcome = "failed";
  run.exit_code = 3;
  run.culprit = "learner.1";
  run.cause = "learner.1 exited with code 3";
  run.seconds = seconds;
  return run;
}

RunComparison compare(std::vector<RunRecord> a, std::vector<RunRecord> b) {
  RunComparison out;
  out.seed = 1;
  out.repeats = 5;
  out.metrics = {{"loss", "loss (.*)"}, {"sync", "sync (.*)"}};
  out.arms = {{{"A", {}, {}, {}}, {}, std::move(a)}, {{"B", {}, {}, {}}, {}, std::move(b)}};
  return out;
}

TEST(Runs, ThatFailedHaveATimeToFailureAndNoTimeToFinish) {
  const auto all = lines(compare({good(10, 1), bad(2)}, {good(20, 1), bad(4)}));
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(name_of(all[0]), "time to finish");
  EXPECT_EQ(all[0].values, std::vector<double>{10});
  EXPECT_TRUE(all[0].reference);
  EXPECT_EQ(all[1].values, std::vector<double>{20});
  EXPECT_EQ(name_of(all[2]), "time to failure");
  EXPECT_EQ(all[3].values, std::vector<double>{4});
  EXPECT_EQ(name_of(all[4]), "loss");
  EXPECT_EQ(all[4].printed, 3U);
  EXPECT_EQ(all[4].first, 2);
  EXPECT_EQ(all[4].last, 0);
  EXPECT_EQ(verdict_text(all[5]), "not judged: too few successful repeats (at least 5 of each)");
}

TEST(Runs, AreComparedInWordsThatFitTheQuantity) {
  const std::vector<RunRecord> fast{good(10, 1), good(11, 2), good(10, 1), good(11, 2), good(10, 1)};
  const std::vector<RunRecord> slow{good(20, 4), good(22, 8), good(20, 4), good(22, 8), good(20, 4)};
  const auto all = lines(compare(fast, slow));
  EXPECT_EQ(verdict_text(all[1]), "100.0 % longer [81.8, 120.0]");
  EXPECT_TRUE(verdict_text(all[3]).starts_with("300.0 % more [")) << verdict_text(all[3]);
}

TEST(Runs, ValuesThatAreNotAllAbove0AreComparedByTheirDifference) {
  const std::vector<RunRecord> a{good(1, -3), good(1, -3), good(1, -3), good(1, -3), good(1, -3)};
  const std::vector<RunRecord> b{good(1, 0.5), good(1, 0.5), good(1, 0.5), good(1, 0.5), good(1, 0.5)};
  EXPECT_EQ(verdict_text(lines(compare(a, b))[3]), "3.5 more [3.5, 3.5]");
  EXPECT_EQ(verdict_text(lines(compare(b, a))[3]), "3.5 less [3.5, 3.5]");
  EXPECT_EQ(verdict_text(lines(compare(a, a))[3]),
            "no difference shown [+0, +0], smallest detectable difference: 0");
}

TEST(Runs, FailuresAreCountedWithEachCauseOnce) {
  const auto found = failures(compare({good(1, 1), bad(2), bad(3)}, {good(1, 1)}));
  EXPECT_EQ(found[0].failed, 2U);
  EXPECT_EQ(found[0].causes, std::vector<std::string>{"learner.1 exited with code 3"});
  EXPECT_EQ(found[1].failed, 0U);
}

TEST(Runs, AnArmWithoutAGoodRunIsTheExitCode) {
  EXPECT_EQ(code_of(compare({good(1, 1), bad(1)}, {good(1, 1)})), exit_code::ok);
  EXPECT_EQ(code_of(compare({good(1, 1)}, {bad(1)})), exit_code::bench_failed);
}

TEST(Runs, AMetricThatNobodyPrintedIsKnown) {
  const auto never = never_printed(compare({good(1, 1)}, {}));
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].name, "sync");
}

RunRecord summary(const char* text) {
  return read_summary(nlohmann::json::parse(text, nullptr, false));
}

TEST(RunRecord, OfAFailureHasCulpritCauseAndTime) {
  const auto run = summary(R"({"outcome": "failed", "exit_code": 3, "decided_ms": 1250, "first": "learner.1",
      "sentence": "learner.1 exited with code 3 after 1.2s",
      "processes": [{"name": "learner.0", "end": null}, {"name": "learner.1", "end": {"code": 3}}]})");
  EXPECT_FALSE(run.well());
  EXPECT_EQ(run.culprit, "learner.1");
  EXPECT_EQ(run.cause, "learner.1 exited with code 3");
  EXPECT_EQ(run.seconds, 1.25);
  EXPECT_FALSE(run.was_stopped());
}

TEST(RunRecord, NamesTheSignal) {
  const auto run = summary(R"({"outcome": "failed", "exit_code": 137, "first": "engine.0",
      "processes": [{"name": "engine.0", "end": {"signal": "SIGKILL"}}]})");
  EXPECT_EQ(run.cause, "engine.0 was killed by SIGKILL");
}

TEST(RunRecord, OfARunThatWasRefusedHasItsSentenceAndNoTime) {
  const auto run = summary(R"({"outcome": "refused", "exit_code": 69, "sentence": "the preflight refused"})");
  EXPECT_EQ(run.cause, "the preflight refused");
  EXPECT_FALSE(run.seconds);
}

TEST(RunRecord, OfARunThatWasStoppedSaysSo) {
  for (const auto* outcome : {"interrupted", "terminated", "walltime"})
    EXPECT_TRUE(read_summary({{"outcome", outcome}, {"exit_code", 130}}).was_stopped());
}

TEST(RunRecord, OfWhateverIsNoSummaryIsAFailure) {
  for (const auto* text : {"", "[]", "{}", "3", R"({"outcome": 3})"}) {
    EXPECT_EQ(summary(text).outcome, "no-summary") << text;
    EXPECT_FALSE(summary(text).well());
  }
}

}  // namespace
}  // namespace nlaunch::bench
