#include "session/recent_preflight.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "preflight/report/report_json.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using preflight::Status;

/// The times of directories count as well.
const std::int64_t kNow = std::time(nullptr);

/// Run directories of one name, the newest of which is about to be checked.
class RecentPreflightTest : public ::testing::Test {
 protected:
  RecentPreflightTest() {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-recent-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    paths_ = {.id = kOwn, .folder = folder_ / kOwn, .attempt = folder_ / kOwn / "attempt-0"};
    bind(kOwn, own_);
  }
  ~RecentPreflightTest() override { fs::remove_all(folder_); }

  struct Bound {
    std::string plan = "the plan";
    std::string gpu = "GPU-1";
    std::string nccl = "2.28.9";
    std::string host = "n1";
    unsigned nodes = 1;  ///< of the plan
    std::map<std::string, std::string> environment{{"NCCL_ALGO", "Ring"}};
  };
  void bind(const std::string& run, const Bound& bound) {
    write(run, "plan.json", {{"name", bound.plan}, {"node", {{"count", bound.nodes}}}});
    json environment(bound.environment);
    environment["NLAUNCH_RUN_DIR"] = (folder_ / run).string();
    environment["OLDPWD"] = "/" + run;
    write(run, "attempt-0/bound." + bound.host + ".json",
          {{"scratch", "/tmp/nlaunch-0-" + run},
           {"gpus", {{{"uuid", bound.gpu}}}},
           {"libraries", {{"nccl", {{"version", bound.nccl}}}}},
           {"notes", {"of " + run}},
           {"processes", {{{"name", "learner.0"}, {"env", environment}}}}});
  }
  /// The report of an earlier run.
  void check(const std::string& run, preflight::Report report) {
    if (report.time == 0) report.time = kNow - 60;
    write(run, "attempt-0/preflight.json", preflight::to_json(report));
  }
  void ended(const std::string& run, const std::string& outcome) {
    write(run, "events.jsonl", {{"event", "run"}});
    if (!outcome.empty()) write(run, "summary.json", {{"outcome", outcome}});
  }
  void clear(const std::string& run) { fs::remove_all(folder_ / run); }
  void write(const std::string& run, const std::string& name, const json& content) {
    const auto file = folder_ / run / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << json_text(content) << "\n";
  }
  /// Makes a directory that changed so long ago.
  void age(const fs::path& folder, std::chrono::seconds ago) {
    fs::last_write_time(folder_ / folder, fs::file_time_type::clock::now() - ago);
  }
  [[nodiscard]] std::string found(PreflightLevel level = PreflightLevel::standard,
                                  const std::string& job = "") const {
    const auto recent = recent_preflight(paths_, level, job, kNow);
    return recent ? recent->run : "";
  }

  static constexpr auto kOwn = "20270115-080000-9";
  static constexpr auto kOther = "20270115-075900-8";
  static constexpr auto kBetween = "20270115-075930-8";
  Bound own_;

 private:
  fs::path folder_;
  launch::RunPaths paths_;
};

TEST_F(RecentPreflightTest, CountsIfEverythingIsTheSame) {
  EXPECT_EQ(found(), "") << "it is not its own predecessor";
  bind(kOther, own_);
  check(kOther, {});
  EXPECT_EQ(found(), kOther) << "of `nlaunch preflight`, which has no events";
  ended(kOther, "finished");
  EXPECT_EQ(found(), kOther);
  EXPECT_EQ(found(PreflightLevel::deep), "");
  check(kOther, {.level = PreflightLevel::deep});
  EXPECT_EQ(found(PreflightLevel::standard), kOther);
}

TEST_F(RecentPreflightTest, DoesNotCountForAnotherPlanNodeGpuLibraryOrEnvironment) {
  const std::vector<Bound> others{{.plan = "another"},
                                  {.gpu = "GPU-2"},
                                  {.nccl = "2.27.5"},
                                  {.host = "n2"},
                                  {.environment = {{"NCCL_ALGO", "Tree"}}},
                                  {.environment = {}}};
  for (const auto& other : others) {
    clear(kOther);
    bind(kOther, other);
    check(kOther, {});
    EXPECT_EQ(found(), "") << other.plan << other.gpu << other.nccl << other.host;
  }
  clear(kOther);
  bind(kOther, own_);
  check(kOther, {});
  EXPECT_EQ(found(), kOther);
  bind(kOther, {.host = "n2"});
  EXPECT_EQ(found(), "") << "two nodes";
}

TEST_F(RecentPreflightTest, NeedsTheFilesOfAllNodes) {
  own_.nodes = 2;
  for (const auto* run : {kOwn, kOther}) bind(run, own_);
  check(kOther, {});
  EXPECT_EQ(found(), "");
  own_.host = "n2";
  for (const auto* run : {kOwn, kOther}) bind(run, own_);
  EXPECT_EQ(found(), kOther);
}

TEST_F(RecentPreflightTest, DoesNotCountInAnotherJobOrWithAnotherVerdictOrTooLate) {
  bind(kOther, own_);
  check(kOther, {.job = "17"});
  EXPECT_EQ(found(), "");
  EXPECT_EQ(found(PreflightLevel::standard, "18"), "");
  EXPECT_EQ(found(PreflightLevel::standard, "17"), kOther);
  check(kOther, {.verdict = Status::warn});
  EXPECT_EQ(found(), kOther);
  for (const auto verdict : {Status::fail, Status::unknown}) {
    check(kOther, {.verdict = verdict});
    EXPECT_EQ(found(), "");
  }
  check(kOther, {.level = PreflightLevel::quick});
  EXPECT_EQ(found(), "");
  check(kOther, {.cancelled = true});
  EXPECT_EQ(found(), "");
  check(kOther, {.time = kNow - 600});
  EXPECT_EQ(found(), kOther);
  for (const auto time : {kNow - 601, kNow + 1}) {
    check(kOther, {.time = time});
    EXPECT_EQ(found(), "");
  }
}

TEST_F(RecentPreflightTest, DoesNotCountAfterARunThatDidNotFinish) {
  bind(kOther, own_);
  check(kOther, {});
  bind(kBetween, own_);
  check(kBetween, {.level = PreflightLevel::quick});
  ended(kBetween, "finished");
  EXPECT_EQ(found(), kOther) << "through a run that relied on it";
  for (const auto* outcome : {"failed", "stalled", "interrupted", "refused", "node-lost"}) {
    ended(kBetween, outcome);
    EXPECT_EQ(found(), "") << outcome;
  }
}

TEST_F(RecentPreflightTest, DoesNotCountAfterAPreflightThatDidNotPass) {
  bind(kOther, own_);
  check(kOther, {});
  for (const auto& wrong : {preflight::Report{.verdict = Status::fail, .time = kNow - 30},
                            preflight::Report{.verdict = Status::unknown, .time = kNow - 30},
                            preflight::Report{.cancelled = true, .time = kNow - 30}}) {
    bind(kBetween, own_);
    check(kBetween, wrong);
    EXPECT_EQ(found(), "") << static_cast<int>(wrong.verdict);
    clear(kBetween);
    EXPECT_EQ(found(), kOther);
  }
  bind(kBetween, own_);
  EXPECT_EQ(found(), "") << "it was killed, or is not over";
  check(kBetween, {.verdict = Status::fail, .job = "17"});
  EXPECT_EQ(found(), kOther) << "in another job, whose GPUs may be others";
}

TEST_F(RecentPreflightTest, WhatWentWrongBeforeDoesNotMatter) {
  bind(kBetween, own_);
  ended(kBetween, "failed");
  for (const auto& folder : {fs::path(kBetween), fs::path(kBetween) / "attempt-0"})
    age(folder, std::chrono::seconds(90));
  bind(kOther, own_);
  check(kOther, {});
  EXPECT_EQ(found(), kOther);
  age(kBetween, std::chrono::seconds(30));
  EXPECT_EQ(found(), "");
}

TEST_F(RecentPreflightTest, DoesNotCountIfTheRunNeededAnotherAttemptOrWasUpdated) {
  bind(kOther, own_);
  check(kOther, {});
  ended(kOther, "finished");
  ASSERT_EQ(found(), kOther);
  write(kOther, "attempt-0/update-20270115T080000Z-1.json", json::object());
  EXPECT_EQ(found(), "") << "what it was checked for is not what is recorded";
  clear(kOther);
  bind(kOther, own_);
  check(kOther, {});
  bind(kBetween, own_);
  write(kBetween, "attempt-1/preflight.json", preflight::to_json(preflight::Report{.time = kNow - 30}));
  ended(kBetween, "finished");
  EXPECT_EQ(found(), "") << "something ended its first attempt";
}

TEST_F(RecentPreflightTest, DoesNotCountForALaterAttempt) {
  bind(kOther, own_);
  check(kOther, {});
  ASSERT_EQ(found(), kOther);
  write(kOwn, "attempt-1/bound.n1.json", json::object());
  EXPECT_EQ(found(), "") << "of a job that was requeued, or without the nodes that a preflight refused";
}

TEST_F(RecentPreflightTest, DoesNotCountIfSomethingCannotBeRead) {
  bind(kOther, own_);
  check(kOther, {});
  ASSERT_EQ(found(), kOther);
  ended(kOther, "");
  EXPECT_EQ(found(), "") << "it has no summary: it still runs, or was killed";
  ended(kOther, "finished");
  write(kOther, "attempt-0/preflight.json", {{"level", "standard"}});
  EXPECT_EQ(found(), "");
  check(kOther, {});
  ASSERT_EQ(found(), kOther);
  write(kOther, "attempt-0/bound.n1.json", "no object");
  EXPECT_EQ(found(), "");
}

TEST(RecentPreflightSentence, SaysWhatWasChecked) {
  RecentPreflight recent{"20270115-075900-8", {}, std::chrono::seconds(90)};
  EXPECT_EQ(sentence(recent),
            "preflight: level quick, because level standard passed 1m30s ago (run 20270115-075900-8) with "
            "the same plan, nodes, GPUs, libraries and environment; --fresh repeats it");
  recent.report.verdict = Status::warn;
  recent.report.level = PreflightLevel::deep;
  EXPECT_EQ(sentence(recent),
            "preflight: level quick, because level deep passed with warnings 1m30s ago (run "
            "20270115-075900-8) with the same plan, nodes, GPUs, libraries and environment; --fresh repeats "
            "it");
}

}  // namespace
}  // namespace nlaunch::session
