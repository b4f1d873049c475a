#include "diagnose/run_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/diagnose/folder.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

class ReadRunFolder : public testing::Test {
 protected:
  ReadRunFolder() { folder_.write("plan.json", "{}"); }

  /// What is read of a run whose summary says this.
  [[nodiscard]] RunFolder read(std::string_view summary) const {
    folder_.write("attempt-1/logs/learner.0.log", "");
    const auto json = Json::parse(summary);
    const KnownSummary known{&json};
    return read_run_folder(folder_.path(), &known).value();
  }
  [[nodiscard]] Names logs_of(const RunFolder& run) const {
    Names names;
    for (const auto& log : run.logs) names.push_back(fs::relative(log, folder_.path()).string());
    return names;
  }

  Folder folder_;
};

TEST_F(ReadRunFolder, IsOneWithAPlanAndAnAttempt) {
  EXPECT_FALSE(read_run_folder(folder_.path()));
  folder_.write("attempt-1/notes.txt", "");
  EXPECT_TRUE(read_run_folder(folder_.path()));
  fs::remove(folder_.path() / "plan.json");
  EXPECT_FALSE(read_run_folder(folder_.path()));
  EXPECT_FALSE(read_run_folder(folder_.path() / "none"));
}

TEST_F(ReadRunFolder, HasTheLogsOfTheLastAttempt) {
  folder_.write("attempt-2/logs/learner.0.log", "");
  folder_.write("attempt-10/logs/learner.1.log", "");
  folder_.write("attempt-10/logs/learner.0.log", "");
  folder_.write("attempt-10/logs/learner.0.txt", "");
  folder_.write("attempt-10/nccl/learner.0.n1.log", "");
  folder_.write("attempt-10/agent.log", "");
  folder_.write("attempt-9/logs/learner.0.log", "");
  folder_.write("attempt-x/logs/learner.7.log", "");
  folder_.write("other-11/logs/learner.7.log", "");
  folder_.write("attempt-12", "a file");
  fs::create_symlink("attempt-2", folder_.path() / "attempt-13");
  fs::create_symlink("learner.0.log", folder_.path() / "attempt-10/logs/link.0.log");
  EXPECT_EQ(logs_of(*read_run_folder(folder_.path())),
            (Names{"attempt-10/agent.log", "attempt-10/logs/learner.0.log", "attempt-10/logs/learner.1.log",
                   "attempt-10/nccl/learner.0.n1.log"}));
}

TEST_F(ReadRunFolder, TakesNoAttemptWithoutANumber) {
  folder_.write("attempt-x/logs/learner.1.log", "");
  EXPECT_FALSE(read_run_folder(folder_.path()));
  folder_.write("attempt-0/logs/learner.0.log", "");
  EXPECT_EQ(logs_of(*read_run_folder(folder_.path())), Names{"attempt-0/logs/learner.0.log"});
}

TEST_F(ReadRunFolder, HasTheLogsOfTheFirstToFailFirst) {
  folder_.write("attempt-1/logs/engine.0.log", "");
  folder_.write("attempt-1/logs/learner.1.log", "");
  folder_.write("attempt-1/nccl/learner.1.n1.log", "");
  EXPECT_EQ(logs_of(read(R"({"first": "learner.1"})")),
            (Names{"attempt-1/logs/learner.1.log", "attempt-1/nccl/learner.1.n1.log",
                   "attempt-1/logs/engine.0.log", "attempt-1/logs/learner.0.log"}));
  EXPECT_EQ(logs_of(read("{}")), (Names{"attempt-1/logs/engine.0.log", "attempt-1/logs/learner.0.log",
                                        "attempt-1/logs/learner.1.log", "attempt-1/nccl/learner.1.n1.log"}));
}

TEST_F(ReadRunFolder, FailedWhereNobodyHadAskedForItsEnd) {
  EXPECT_TRUE(read(R"({"exit_code": 1, "outcome": "failed"})").failed);
  EXPECT_FALSE(read(R"({"exit_code": 0, "outcome": "finished"})").failed);
  EXPECT_FALSE(read(R"({"outcome": "failed"})").failed);
  EXPECT_FALSE(read(R"({"exit_code": "1"})").failed);
  for (const auto* outcome : {"interrupted", "terminated", "walltime"})
    EXPECT_FALSE(read(Json{{"exit_code", 130}, {"outcome", outcome}}.dump()).failed) << outcome;
}

TEST_F(ReadRunFolder, KnowsTheFirstToFail) {
  const auto run = read(R"({
    "exit_code": 1, "first": "learner.0", "sentence": "learner.0 exited with code 3", "decided_ms": 1000,
    "processes": [{"name": "engine.0", "pid": 5, "program": "vllm", "ended_ms": 900, "end": {"code": 7}},
                  {"name": "learner.0", "pid": 4711, "program": "python train.py", "ended_ms": 1000, "end": {"code": 3}}]})");
  EXPECT_EQ(run.first, "learner.0");
  EXPECT_EQ(run.what, "learner.0 exited with code 3");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.first_known.process, "learner.0");
  EXPECT_EQ(run.first_known.program, "python train.py");
  EXPECT_EQ(run.first_known.pid, "4711");
  EXPECT_FALSE(run.out_of_memory);
  EXPECT_FALSE(run.lost_child);
  EXPECT_FALSE(run.hang);
  EXPECT_FALSE(run.ended_early);
  EXPECT_TRUE(run.unread.empty());
}

TEST_F(ReadRunFolder, HasTheCodeOfTheFirstAsAShellHasIt) {
  const auto code = [&](std::string_view process, std::string_view decided = "1000") {
    return read(fmt::format(R"({{"first": "a.0", "decided_ms": {}, "processes": [{{"name": "a.0", {}}}]}})",
                            decided, process))
        .code;
  };
  EXPECT_EQ(code(R"("ended_ms": 900, "end": {"signal": "SIGKILL"})"), 137);
  EXPECT_EQ(code(R"("ended_ms": 900, "end": {"signal": "1"})"), 129);
  EXPECT_EQ(code(R"("ended_ms": 900, "end": {"signal": "SIGNONE", "code": 4})"), 4);
  EXPECT_EQ(code(R"("ended_ms": 900, "end": {"code": 0})"), 0);
  EXPECT_EQ(code(R"("ended_ms": 900, "end": 5)"), std::nullopt);
  EXPECT_EQ(code(R"("ended_ms": 900)"), std::nullopt);
  // What ended it after the run was decided was nlaunch.
  EXPECT_EQ(code(R"("ended_ms": 1000, "end": {"code": 3})"), 3);
  EXPECT_EQ(code(R"("ended_ms": 1001, "end": {"code": 3})"), std::nullopt);
  EXPECT_EQ(code(R"("end": {"code": 3})"), 3);
  EXPECT_EQ(code(R"("ended_ms": 1001, "end": {"code": 3})", "null"), 3);
}

TEST_F(ReadRunFolder, DoesNotCallAShellTheProgram) {
  const auto run =
      read(R"({"first": "a.0", "processes": [{"name": "a.0", "pid": 7, "program": "bash -c"}]})");
  EXPECT_EQ(run.first_known.program, "");
  EXPECT_EQ(run.first_known.pid, "7");
}

TEST_F(ReadRunFolder, KnowsHowEachProcessStands) {
  const auto run = read(R"({
    "exit_code": 1, "outcome": "failed", "first": "learner.0", "decided_ms": 1000,
    "processes": [{"name": "learner.0", "ended_ms": 900, "end": {"code": 1}, "log_when_decided": 10},
                  {"name": "well.0", "ended_ms": 1000, "end": {"code": 0}},
                  {"name": "bad.0", "ended_ms": 1000, "end": {"code": 2}, "log_when_decided": -5},
                  {"name": "later.0", "ended_ms": 1001, "end": {"code": 0}, "log_when_decided": 2.5},
                  {"name": "runs.0"}, 7]})");
  const std::map<std::string, Standing> standing{{"learner.0", Standing::failed},
                                                 {"well.0", Standing::well},
                                                 {"bad.0", Standing::unknown},
                                                 {"later.0", Standing::stopped},
                                                 {"runs.0", Standing::stopped}};
  EXPECT_EQ(run.standing, standing);
  const std::map<std::string, std::uint64_t> bytes{{"learner.0", 10}, {"bad.0", 0}, {"later.0", 2}};
  EXPECT_EQ(run.log_when_decided, bytes);
}

TEST_F(ReadRunFolder, OfARunThatWasEndedOrFinishedNobodyFailed) {
  const auto standing = [&](std::string_view outcome, std::string_view more) {
    return read(fmt::format(R"({{"outcome": "{}", "decided_ms": 1000, "processes": [{{"name": "a.0"{}}}]}})",
                            outcome, more))
        .standing.at("a.0");
  };
  EXPECT_EQ(standing("finished", ""), Standing::well);
  EXPECT_EQ(standing("finished", R"(, "ended_ms": 900, "end": {"code": 1})"), Standing::well);
  for (const auto* outcome : {"interrupted", "terminated", "walltime"}) {
    EXPECT_EQ(standing(outcome, R"(, "ended_ms": 1001, "end": {"code": 1})"), Standing::asked) << outcome;
    EXPECT_EQ(standing(outcome, R"(, "ended_ms": 1000, "end": {"code": 1})"), Standing::unknown) << outcome;
  }
  EXPECT_EQ(
      read(R"({"outcome": "failed", "processes": [{"name": "a.0", "ended_ms": 5}]})").standing.at("a.0"),
      Standing::unknown);
}

TEST_F(ReadRunFolder, KnowsWhoEndedEarlyFirst) {
  const auto run = read(R"({"processes": [{"name": "a.0", "ended_early": ""},
    {"name": "b.0", "pid": 7, "ended_early": "ended at step 5 of 10"}, {"name": "c.0", "ended_early": "too"}]})");
  ASSERT_TRUE(run.ended_early);
  EXPECT_EQ(run.ended_early->process, "b.0");
  EXPECT_EQ(run.ended_early->pid, "7");
  EXPECT_EQ(run.ended_early->how, "ended at step 5 of 10");
}

TEST_F(ReadRunFolder, KnowsOfTheOutOfMemoryKiller) {
  EXPECT_TRUE(read(R"({"oom_kills": 1})").out_of_memory);
  EXPECT_FALSE(read(R"({"oom_kills": 0})").out_of_memory);
  EXPECT_FALSE(read(R"({"oom_kills": "1"})").out_of_memory);
}

TEST_F(ReadRunFolder, KnowsTheLostChildAndHowItEnded) {
  const auto child = [&](std::string_view end) {
    return read(
               fmt::format(
                   R"({{"lost_child": {{"process": "engine.0", "name": "VLLM::EngineCore", "pid": 4711{}}}}})",
                   end))
        .lost_child;
  };
  const auto known = child(R"(, "end": {"signal": "SIGKILL"})");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->process, "engine.0");
  EXPECT_EQ(known->program, "VLLM::EngineCore");
  EXPECT_EQ(known->pid, "4711");
  EXPECT_EQ(known->how, "SIGKILL");
  EXPECT_EQ(child(R"(, "end": {"code": 0})")->how, "exited");
  EXPECT_EQ(child(R"(, "end": 7)")->how, "");
  EXPECT_EQ(child("")->how, "");
  EXPECT_FALSE(read(R"({"lost_child": "engine.0"})").lost_child);
}

std::string stalled(std::string_view findings, std::string_view outcome = "stalled") {
  return fmt::format(R"({{"outcome": "{}", "watch": {{"findings": {}}}}})", outcome, findings);
}

TEST_F(ReadRunFolder, KnowsTheHangThatItWasEndedFor) {
  const auto run = read(stalled(R"json([{"verdict": {"sure": false, "sentence": "an earlier one"}},
    {"verdict": {"sure": true, "sentence": "learner.1 is stopped", "culprits": [7,
      {"process": "learner.1", "program": "python", "pid": 4711, "doing": "stopped", "why": "is stopped (state T)"},
      {"process": "learner.2", "doing": "waiting"}]}}])json"));
  ASSERT_TRUE(run.hang);
  EXPECT_TRUE(run.hang->sure);
  EXPECT_EQ(run.hang->sentence, "learner.1 is stopped");
  EXPECT_EQ(run.hang->doing, "stopped");
  ASSERT_EQ(run.hang->culprits.size(), 2U);
  EXPECT_EQ(run.hang->culprits[0].process, "learner.1");
  EXPECT_EQ(run.hang->culprits[0].program, "python");
  EXPECT_EQ(run.hang->culprits[0].pid, "4711");
  EXPECT_EQ(run.hang->culprits[0].how, "is stopped (state T)");
  EXPECT_EQ(run.hang->culprits[1].process, "learner.2");
  EXPECT_EQ(run.hang->culprits[1].pid, "");
}

TEST_F(ReadRunFolder, IsNotSureOfAHangUnlessTheVerdictSaysSo) {
  EXPECT_FALSE(read(stalled(R"([{"verdict": {"sure": false}}])")).hang->sure);
  EXPECT_FALSE(read(stalled(R"([{"verdict": {"sure": 1}}])")).hang->sure);
  EXPECT_FALSE(read(stalled(R"([{"verdict": {"culprits": 7}}])")).hang->sure);
}

TEST_F(ReadRunFolder, KnowsNoHangOfARunThatEndedForAnotherReasonOrSaysNothingOfIt) {
  EXPECT_FALSE(read(stalled(R"([{"verdict": {"sure": true}}])", "failed")).hang);
  for (const auto* findings : {"[]", "7", "[7]", "[{}]", R"([{"verdict": 7}])"})
    EXPECT_FALSE(read(stalled(findings)).hang) << findings;
  EXPECT_FALSE(read(R"({"outcome": "stalled"})").hang);
  EXPECT_FALSE(read(R"({"outcome": "stalled", "watch": 7})").hang);
  EXPECT_FALSE(read(R"({"outcome": "stalled", "watch": {}})").hang);
}

TEST_F(ReadRunFolder, TakesAnythingForASummary) {
  EXPECT_EQ(read(R"({"first": 7, "sentence": null})").first, "");
  for (const auto* summary :
       {"null", "[]", "7", "{}", R"({"processes": 7})", R"({"processes": [7, null]})"}) {
    const auto run = read(summary);
    EXPECT_FALSE(run.failed) << summary;
    EXPECT_TRUE(run.standing.empty()) << summary;
    EXPECT_EQ(run.logs.size(), 1U) << summary;
  }
}

TEST_F(ReadRunFolder, ReadsTheSummaryThatStandsThere) {
  folder_.write("attempt-1/logs/learner.0.log", "");
  EXPECT_TRUE(read_run_folder(folder_.path())->unread.empty());
  folder_.write("summary.json",
                R"({"format": "nlaunch summary", "version": 1, "exit_code": 1, "first": "learner.0"})");
  EXPECT_EQ(read_run_folder(folder_.path())->first, "learner.0");
  EXPECT_TRUE(read_run_folder(folder_.path())->failed);
  folder_.write("summary.json", "{");
  const auto run = read_run_folder(folder_.path());
  ASSERT_FALSE(run->unread.empty());
  EXPECT_EQ(run->unread.items()[0].id, "run.damaged");
  EXPECT_EQ(run->first, "");
  EXPECT_EQ(run->logs.size(), 1U);
}

TEST_F(ReadRunFolder, HasWhatProcessesRecordedBeforeTheRunWasDecided) {
  for (const auto* name : {"learner.0", "learner.1", "learner.2", "learner.3"})
    folder_.write(fmt::format("attempt-1/errors/{}.log", name), "");
  folder_.write("attempt-1/logs/learner.1.log", "");
  const auto run = read(R"({"exit_code": 1, "first": "learner.1", "decided_ms": 900, "processes": [
      {"name": "learner.0", "exception": {"type": "RuntimeError", "message": "closed", "raised_ms": 900}},
      {"name": "learner.1", "exception": {"type": "ValueError", "message": "a NaN\nmore", "raised_ms": 800}},
      {"name": "learner.2", "exception": {"type": "RuntimeError", "message": "closed", "raised_ms": 901}},
      {"name": "learner.3"}, {"name": "learner.4", "exception": 7}, 7]})");
  EXPECT_EQ(logs_of(run), (Names{"attempt-1/errors/learner.1.log", "attempt-1/logs/learner.1.log",
                                 "attempt-1/errors/learner.0.log", "attempt-1/logs/learner.0.log"}));
  EXPECT_EQ(run.exception, "ValueError: a NaN");
  EXPECT_EQ(read(R"({"first": "learner.1", "processes": [
      {"name": "learner.1", "exception": {"type": "", "message": "a NaN"}}]})")
                .exception,
            "a NaN");
  EXPECT_EQ(logs_of(*read_run_folder(folder_.path())).size(), 6U) << "without a summary all are read";
}

TEST(ProcessOfFile, IsWhatTheNameInARunFolderSays) {
  EXPECT_EQ(process_of_file("/r/attempt-1/errors/learner.0.log"), "learner.0");
  EXPECT_EQ(process_of_file("/r/attempt-1/logs/learner.0.log"), "learner.0");
  EXPECT_EQ(process_of_file("attempt-12/nccl/roll-out.10.n1.log"), "roll-out.10");
  EXPECT_EQ(process_of_file("attempt-1/logs/learner.log"), "");
  EXPECT_EQ(process_of_file("attempt-1/agent.0.log"), "");
  EXPECT_EQ(process_of_file("learner.0.log"), "");
  EXPECT_EQ(process_of_file("attempt-1/logs/learner.0.log/x"), "");
}

}  // namespace
}  // namespace nlaunch::diagnose
