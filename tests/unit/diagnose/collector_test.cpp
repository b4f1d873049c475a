#include "diagnose/collector.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device\n";
constexpr std::string_view kOom = "RuntimeError: CUDA error: out of memory\n";
constexpr std::string_view kClosed =
    "n2:5:6 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n1.lan<45074>\n";
constexpr std::string_view kAsked =
    "(EngineCore pid=7) [shutdown] EngineCore: trigger received signal=SIGTERM\n";
constexpr std::string_view kPart = "(EngineCore pid=7) Shutdown initiated (timeout=0)\n";
constexpr std::string_view kServer = "(APIServer pid=5) INFO: Shutting down FastAPI HTTP server.\n";
constexpr std::string_view kForced = "srun: forcing job termination\n";

std::string text_of(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const auto line : lines) text += line;
  return text;
}

Origin process(std::string_view name) {
  Origin origin;
  origin.process = name;
  return origin;
}

TEST(Excerpt, IsTheWholeOfALineOfFourHundredBytes) {
  const std::string line(400, 'x');
  EXPECT_EQ(excerpt(line, line), line);
  EXPECT_EQ(excerpt("short", ""), "short");
}

TEST(Excerpt, OfALongerOneIsWhatStandsAroundTheMatch) {
  std::string line;
  for (int i = 0; i < 100; ++i) line += fmt::format("{:09} ", i);
  const std::string_view whole = line;
  EXPECT_EQ(excerpt(whole.substr(0, 401), ""), line.substr(0, 400) + "...");
  EXPECT_EQ(excerpt(whole, whole.substr(0, 120)), line.substr(0, 400) + "...");
  EXPECT_EQ(excerpt(whole, whole.substr(0, 121)), "..." + line.substr(1, 400) + "...");
  EXPECT_EQ(excerpt(whole.substr(0, 520), whole.substr(0, 240)), "..." + line.substr(120, 400));
  EXPECT_EQ(excerpt(whole.substr(0, 521), whole.substr(0, 240)), "..." + line.substr(120, 400) + "...");
  EXPECT_EQ(excerpt(whole, whole.substr(0, 990)), "..." + line.substr(870));
}

TEST(Earlier, GoesByTheTimesWhereBothHaveOne) {
  Finding first;
  first.position = {0, 5};
  Finding second;
  second.position = {0, 9};
  EXPECT_TRUE(earlier(first, second));
  EXPECT_FALSE(earlier(second, first));
  EXPECT_FALSE(earlier(first, first));
  second.time = 7;
  EXPECT_TRUE(earlier(first, second));
  first.time = 8;
  EXPECT_FALSE(earlier(first, second));
  EXPECT_TRUE(earlier(second, first));
  second.time = 8;
  EXPECT_TRUE(earlier(first, second));
  second.position = {1, 1};
  EXPECT_TRUE(earlier(first, second));
}

TEST(Collector, GivesALineWithoutANameToWhoSpokeJustBefore) {
  const std::string speaks = "[rank3]: ncclRemoteError: A call failed\n";
  EXPECT_EQ(cause_of(speaks + nothing(7) + std::string(kFull)), "disk-full 9: rank 3");
  EXPECT_EQ(cause_of(speaks + nothing(8) + std::string(kFull)), "disk-full 10");
  EXPECT_EQ(cause_of(findings_of({{speaks, {}}, {std::string(kFull), {}}})), "disk-full 1");
}

TEST(Collector, DoesNotTakeThePeerOfTheLineBeforeForTheCulprit) {
  EXPECT_EQ(cause_of(text_of({kClosed, kFull})), "disk-full 2: n2 (pid 5, GPU 0)");
}

TEST(Collector, GivesALineWithoutANameToTheFile) {
  Origin whose;
  whose.rank = "4";
  whose.host = "n4";
  EXPECT_EQ(cause_of(findings_of({{std::string(kFull), whose}})), "disk-full 1: rank 4 on n4");
  EXPECT_EQ(cause_of(findings_of({{"[rank3]: " + std::string(kFull), whose}})), "disk-full 1: rank 3");
  EXPECT_EQ(cause_of(findings_of({{"[default1]:" + std::string(kFull), whose}})),
            "disk-full 1: local rank 1");
  EXPECT_EQ(cause_of(findings_of({{"(Worker pid=7) " + std::string(kFull), whose}})),
            "disk-full 1: rank 4 on n4 (Worker, pid 7)");
}

TEST(Collector, NamesTheProcessOfTheRunWhoeverSpeaks) {
  EXPECT_EQ(cause_of(findings_of({{"[rank3]: " + std::string(kFull), process("learner.0")}})),
            "disk-full 1: learner.0 (rank 3)");
}

TEST(Collector, TakesAFileForThatOfTheOneRankThatItTellsOf) {
  const std::string one = "init: world_size=4 rank=1\n";
  EXPECT_EQ(cause_of(one + nothing(20) + std::string(kFull)), "disk-full 22: rank 1");
  EXPECT_EQ(cause_of(one + one + nothing(20) + std::string(kFull)), "disk-full 23: rank 1");
  const auto two = one + "init: world_size=4 rank=2\n";
  EXPECT_EQ(cause_of(two + nothing(20) + std::string(kFull)), "disk-full 23");
  EXPECT_EQ(cause_of(two + one + nothing(20) + std::string(kFull)), "disk-full 24");
  const auto three = one + "init: world_size=4 rank=2\ninit: world_size=4 rank=3\n";
  EXPECT_EQ(cause_of(three + nothing(20) + std::string(kFull)), "disk-full 24");
}

TEST(Collector, DoesNotTakeTheRankWithinAServerForThatOfTheFile) {
  EXPECT_EQ(cause_of("(Worker pid=7) world_size=4 rank=1\n" + nothing(20) + std::string(kFull)),
            "disk-full 22");
  EXPECT_EQ(cause_of(findings_of(
                {{"world_size=4 rank=1\n" + nothing(20) + std::string(kFull), process("engine.0")}})),
            "disk-full 22: engine.0");
}

TEST(Collector, DropsTheNameOfAFileThatTellsOfAnotherRank) {
  Origin whose;
  whose.rank = "3";
  EXPECT_EQ(cause_of(findings_of({{"world_size=4 rank=3\n" + nothing(20) + std::string(kFull), whose}})),
            "disk-full 22: rank 3");
  EXPECT_EQ(cause_of(findings_of({{"world_size=4 rank=1\n" + nothing(20) + std::string(kFull), whose}})),
            "disk-full 22");
}

TEST(Collector, LeavesOutWhatAProcessSaysThatEndedWell) {
  const FileStanding well{Standing::well};
  EXPECT_EQ(cause_of(findings_of({{std::string(kFull), {}, well}})), "healthy");
  EXPECT_EQ(cause_of(findings_of({{"loss: nan\n", {}, well}})), "nan-loss 1");
  EXPECT_EQ(cause_of(findings_of({{std::string(kFull), {}, {Standing::asked}}})), "disk-full 1");
}

TEST(Collector, LeavesOutWhatIsSaidAfterTheRunWasDecided) {
  const auto text = text_of({"first\n", kFull});
  EXPECT_EQ(cause_of(findings_of({{text, {}, {Standing::stopped, 6}}})), "healthy");
  EXPECT_EQ(cause_of(findings_of({{text, {}, {Standing::stopped, 0}}})), "healthy");
  EXPECT_EQ(cause_of(findings_of({{text, {}, {Standing::stopped, 7}}})), "disk-full 2");
}

TEST(Collector, KnowsHowEachProcessStands) {
  Collector collector;
  collector.begin({}, {Standing::failed});
  collector.begin({}, {Standing::stopped, 0});
  EXPECT_EQ(collector.standing(0), Standing::failed);
  EXPECT_EQ(collector.standing(1), Standing::stopped);
  EXPECT_EQ(collector.standing(2), Standing::unknown);
  EXPECT_FALSE(collector.is_from_before(0));
  EXPECT_TRUE(collector.is_from_before(1));
  EXPECT_FALSE(collector.is_from_before(2));
}

TEST(Collector, TakesASourceLineOfATracebackForNoFailure) {
  const std::string frame = "  File \"a.py\", line 1, in f\n";
  const std::string source = "    shutil.copy()  # [Errno 28] No space left on device\n";
  EXPECT_EQ(cause_of(frame + source), "healthy");
  EXPECT_EQ(cause_of("0: " + frame + "0: " + source), "healthy");
  EXPECT_EQ(cause_of("nothing\n" + source), "disk-full 2");
  EXPECT_EQ(cause_of(frame + "OSError: [Errno 28] No space left on device\n"), "disk-full 2");
  EXPECT_EQ(cause_of(std::string(200, ' ') + frame + "[Errno 28] No space left on device\n"), "disk-full 2");
  EXPECT_EQ(cause_of("    raise OSError(\"[Errno 28] No space left on device\")\n"), "healthy");
  EXPECT_EQ(cause_of("could not raise it: [Errno 28] No space left on device\n"), "disk-full 1");
}

TEST(Collector, TakesNcclsRasAndWhatNcclTriesForNoFailure) {
  EXPECT_EQ(
      cause_of(
          "n1:1:2 [0] ras/client.cc:30 NCCL WARN socketProgress: Connection closed by remote peer n1<45>\n"),
      "healthy");
  EXPECT_TRUE(findings_of("n1:1:2 [0] ras/client.cc:30 NCCL WARN something else\n").empty());
  EXPECT_TRUE(findings_of("n1:1:2 [0] NCCL INFO Bootstrap : no socket interface found\n").empty());
  EXPECT_EQ(cause_of("n1:1:2 [0] NCCL WARN Bootstrap : no socket interface found\n"),
            "no-socket-interface 1: n1 (pid 1, GPU 0)");
  const auto notes = findings_of("n1:1:2 [0] NCCL INFO Using network Socket\n");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].category, "slow-network");
}

TEST(Collector, TakesWhatIsSaidInPassingForNoFailure) {
  EXPECT_EQ(cause_of("INFO 11-23 13:15:24 [a.py:1] [Errno 28] No space left on device\n"), "healthy");
  EXPECT_EQ(cause_of("WARNING 11-23 13:15:24 [a.py:1] [Errno 28] No space left on device\n"), "healthy");
  EXPECT_EQ(cause_of("ERROR 11-23 13:15:24 [a.py:1] [Errno 28] No space left on device\n"), "disk-full 1");
}

TEST(Collector, CountsBehindAnOrderlyEndOnlyWhatNamesAReason) {
  const std::string killed = "srun: error: n1: task 0: Killed\n";
  for (const auto end : {kAsked, kPart, kServer, kForced}) {
    EXPECT_EQ(cause_of(std::string(end) + killed), "healthy") << end;
    EXPECT_EQ(cause_of(std::string(end) + std::string(kClosed)), "healthy") << end;
    EXPECT_EQ(cause_of(std::string(end) + nothing(20) + std::string(kFull)), "disk-full 22") << end;
  }
  EXPECT_EQ(cause_of(findings_of({{killed, {}, {Standing::asked}}})), "healthy");
  EXPECT_EQ(cause_of(findings_of({{std::string(kForced), {}}, {killed, {}}})),
            "process-killed 1: task 0 on n1");
}

/// "LINE SIGNATURE: WHO" of the end that a file tells of.
std::string asked_in(std::string_view text, FileStanding standing = {Standing::failed}) {
  Collector collector;
  read_logs(collector, {{std::string(text), {}, standing}});
  const auto& asked = collector.asked_to_end();
  if (asked.empty()) return "";
  const auto& finding = asked.begin()->second;
  return fmt::format("{} {}: {}", finding.position.line, finding.signature, names_of(finding.culprits));
}

TEST(AskedToEnd, IsTheFirstThatSaysSo) {
  EXPECT_EQ(asked_in(kAsked), "1 end.asked: EngineCore (pid 7)");
  EXPECT_EQ(asked_in(text_of({kAsked, kAsked, kServer})), "1 end.asked: EngineCore (pid 7)");
  EXPECT_EQ(asked_in(text_of({kServer, kPart})), "1 end.server: APIServer (pid 5)");
  EXPECT_EQ(asked_in(kForced), "");
}

TEST(AskedToEnd, IsTheServerWhereItHasAskedItsPart) {
  EXPECT_EQ(asked_in(kPart), "1 end.part: EngineCore (pid 7)");
  EXPECT_EQ(asked_in(text_of({kPart, kServer})), "2 end.server: APIServer (pid 5)");
  EXPECT_EQ(asked_in(text_of({kPart, kAsked})), "1 end.part: EngineCore (pid 7)");
  constexpr std::string_view kLost = "RuntimeError: Engine core process EngineCore_DP1 died unexpectedly.\n";
  EXPECT_EQ(asked_in(text_of({kPart, kLost, kServer})), "1 end.part: EngineCore (pid 7)");
}

TEST(AskedToEnd, IsTheSenderWhereThatIsTold) {
  constexpr std::string_view kSent =
      "(MainProcess pid=3) [shutdown] Process manager: send sigterm to process ApiServer_0\n";
  EXPECT_EQ(asked_in(text_of({kSent, kAsked, kServer})), "1 end.passed-on: MainProcess (pid 3)");
}

TEST(AskedToEnd, IsOfInterestOnlyBeforeTheRunWasDecided) {
  EXPECT_EQ(asked_in(kAsked, {}), "");
  EXPECT_EQ(asked_in(kAsked, {Standing::stopped}), "");
  EXPECT_EQ(asked_in(kAsked, {Standing::stopped, 1}), "1 end.asked: EngineCore (pid 7)");
  EXPECT_EQ(asked_in(text_of({"first\n", kAsked}), {Standing::stopped, 6}), "");
}

TEST(AskedToEnd, IsNoneBehindAFailure) {
  EXPECT_EQ(asked_in(text_of({kFull, kAsked})), "");
  EXPECT_EQ(asked_in(text_of({kClosed, kAsked})), "");
  EXPECT_EQ(asked_in(text_of({kForced, kClosed, kAsked})), "");
  EXPECT_EQ(asked_in(text_of({"srun: error: n1: task 0: Killed\n", kAsked})),
            "2 end.asked: EngineCore (pid 7)");
  EXPECT_EQ(asked_in(text_of({kForced, "srun: error: n1: task 0: Killed\n", kAsked})),
            "3 end.asked: EngineCore (pid 7)");
}

TEST(AskedToEnd, IsKeptOfEachFile) {
  Collector collector;
  read_logs(collector,
            {{std::string(kFull), {}, {Standing::failed}}, {std::string(kAsked), {}, {Standing::failed}}});
  ASSERT_EQ(collector.asked_to_end().size(), 1U);
  EXPECT_EQ(collector.asked_to_end().begin()->first, 1U);
}

TEST(GoodEnds, AreTheLastOfEachFile) {
  Collector collector;
  read_logs(collector, {{"Training completed\nnothing\nTraining completed\n", {}}, {"nothing\n", {}}});
  const std::map<std::uint32_t, LogPosition> expected{{0, {0, 3}}};
  EXPECT_EQ(collector.good_ends(), expected);
}

std::vector<std::string> signatures_in(std::string_view text) {
  Collector collector;
  read_logs(collector, {{std::string(text), {}}});
  std::vector<std::string> ids;
  for (const auto& [signature, tally] : collector.tallies()) ids.push_back(signature->id);
  std::ranges::sort(ids);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(Fallbacks, CountOnlyWhereNothingElseKnowsTheLine) {
  EXPECT_EQ(signatures_in("ValueError: so it is\n"), Ids{"python.raised"});
  EXPECT_EQ(signatures_in("ValueError: [Errno 28] No space left on device\n"), Ids{"disk.full"});
  EXPECT_EQ(signatures_in("[Errno 28] No space left on device HTTPSConnectionPool(host='huggingface.co')\n"),
            Ids{"disk.full"});
  EXPECT_EQ(signatures_in("ValueError: so it is\nOSError: [Errno 28] No space left on device\n"),
            (Ids{"disk.full", "python.raised"}));
  EXPECT_EQ(signatures_in("OSError: [Errno 28] No space left on device\nValueError: so it is\n"),
            (Ids{"disk.full", "python.raised"}));
}

TEST(Fallbacks, OfOneLineAreTheHeavierOrElseTheFirst) {
  const std::string hub = "HTTPSConnectionPool(host='huggingface.co', port=443)";
  EXPECT_EQ(signatures_in("wandb: ERROR " + hub + "\n"), Ids{"wandb.said"});
  EXPECT_EQ(signatures_in(hub + " wandb: ERROR no\n"), Ids{"hub.retry"});
  EXPECT_EQ(signatures_in(hub + " Read timed out. huggingface\n"), Ids{"hub.http"});
  EXPECT_EQ(signatures_in(hub + "\n" + hub + " Read timed out. huggingface\n"),
            (Ids{"hub.http", "hub.retry"}));
}

TEST(Fallbacks, AreNotHeldBackByANote) {
  EXPECT_EQ(signatures_in("ValueError: srun: Job step aborted: Waiting up to 62 seconds\n"),
            (Ids{"python.raised", "slurm.aborted"}));
}

const Tally& tally_of(const Collector& collector, std::string_view id) {
  return collector.tallies().at(find_signature(id));
}

TEST(Tallies, CountLinesAndNameEachOnce) {
  Collector collector;
  const std::string full(kFull);
  read_logs(collector, {{"[rank1]: " + full + "[rank2]: " + full + "[rank1]: " + full, {}}});
  const auto& tally = tally_of(collector, "disk.full");
  EXPECT_EQ(tally.count, 3U);
  EXPECT_EQ(tally.best.position.line, 1U);
  EXPECT_EQ(names_of(tally.whos), "ranks 1 and 2");
  EXPECT_TRUE(tally.last.empty());
}

TEST(Tallies, HaveTheLastLineOfAHintInEachFile) {
  Collector collector;
  const std::string missing = "a.sh: line 1: tool: command not found\n";
  read_logs(collector, {{missing + missing, {}}, {"nothing\n" + missing, {}}});
  const auto& tally = tally_of(collector, "python.no-command");
  ASSERT_EQ(tally.last.size(), 2U);
  EXPECT_EQ(tally.last.at(0).position.line, 2U);
  EXPECT_EQ(tally.last.at(1).position.line, 2U);
}

TEST(Tallies, AreBounded) {
  std::string text;
  for (int rank = 0; rank < 257; ++rank) text += fmt::format("[rank{}]: {}", rank, kFull);
  Collector of_ranks;
  read_logs(of_ranks, {{text, {}}});
  EXPECT_EQ(tally_of(of_ranks, "disk.full").whos.size(), 256U);
  EXPECT_EQ(tally_of(of_ranks, "disk.full").count, 257U);

  const std::string missing = "a.sh: line 1: tool: command not found\n";
  std::vector<Log> logs(4097, Log{missing, {}});
  logs.front().text = missing + missing;
  Collector of_files;
  read_logs(of_files, logs);
  EXPECT_EQ(tally_of(of_files, "python.no-command").last.size(), 4096U);
  EXPECT_EQ(tally_of(of_files, "python.no-command").last.at(0).position.line, 2U);
}

}  // namespace
}  // namespace nlaunch::diagnose
