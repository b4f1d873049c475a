#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sys/tar.h"
#include "unit/diagnose/folder.h"
#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device\n";

std::string rank_of(const Diagnosis& diagnosis) {
  return diagnosis.findings.empty() ? "healthy" : names_of(diagnosis.findings[0].culprits);
}

/// The inputs by their names in the folder.
Names inputs_of(const Diagnosis& diagnosis, const Folder& folder) {
  Names names;
  for (const auto& input : diagnosis.inputs)
    names.push_back(fs::relative(input.name, folder.path()).string());
  return names;
}

TEST(Diagnose, ReadsAFile) {
  const Folder folder;
  const auto file = folder.write("a.log", "first\n" + std::string(kFull) + "  the end \n\n");
  const auto diagnosis = diagnose({file}, {});
  ASSERT_EQ(diagnosis.inputs.size(), 1U);
  EXPECT_EQ(diagnosis.inputs[0].name, file);
  EXPECT_EQ(diagnosis.inputs[0].bytes, 6 + kFull.size() + 12);
  EXPECT_EQ(diagnosis.inputs[0].lines, 4U);
  EXPECT_EQ(diagnosis.inputs[0].last, "the end");
  EXPECT_EQ(diagnosis.inputs[0].remark, "");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(cause_of(diagnosis.findings), "disk-full 2");
  EXPECT_EQ(diagnosis.file_of(diagnosis.findings[0]), file);
  EXPECT_TRUE(diagnosis.notes.empty());
  EXPECT_TRUE(diagnosis.unread.empty());
  EXPECT_FALSE(diagnosis.run);
}

std::string told(const Finding& finding) {
  return fmt::format("{} {}:{} x{} {} [{}]", finding.category, finding.position.file, finding.position.line,
                     finding.count, finding.text, names_of(finding.culprits));
}

TEST(Diagnose, TellsTheSameHoweverManyThreadsRead) {
  const Folder folder;
  std::string heavy;  // more than is held for a file that is not its turn
  while (heavy.size() < 10U << 20U) heavy += std::string(kFull);
  for (int i = 0; i < 40; ++i) {
    std::string text = nothing(i * 4000);
    if (i % 3 == 0) text += fmt::format("[rank{}]: {}", i, kFull);
    if (i % 7 == 0)
      text += "Traceback (most recent call last):\n" + nothing(300) + "ValueError: of " + std::to_string(i) +
              "\n";
    text += nothing(5000);
    folder.write(fmt::format("rank{:02}.log", i), text);
  }
  folder.write("a-heavy.log", heavy);
  folder.write("z-heavy.log", heavy);
  fs::create_symlink("nowhere", folder.path() / "gone.log");
  const std::vector<std::string> paths{(folder.path() / "gone.log").string(), folder.path().string(),
                                       folder.write("last.txt", kFull)};
  const auto one = diagnose(paths, {});
  ASSERT_GT(one.findings.size(), 0U);
  for (const unsigned threads : {2U, 5U, 64U}) {
    const auto many = diagnose(paths, {.threads = threads});
    EXPECT_EQ(many.unread.first_message(), one.unread.first_message());
    ASSERT_EQ(many.inputs.size(), one.inputs.size());
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      EXPECT_EQ(many.inputs[i].name, one.inputs[i].name);
      EXPECT_EQ(many.inputs[i].bytes, one.inputs[i].bytes);
      EXPECT_EQ(many.inputs[i].lines, one.inputs[i].lines);
      EXPECT_EQ(many.inputs[i].last, one.inputs[i].last);
    }
    ASSERT_EQ(many.findings.size(), one.findings.size());
    for (std::size_t i = 0; i < one.findings.size(); ++i)
      EXPECT_EQ(told(many.findings[i]), told(one.findings[i]));
    ASSERT_EQ(many.notes.size(), one.notes.size());
    for (std::size_t i = 0; i < one.notes.size(); ++i) EXPECT_EQ(told(many.notes[i]), told(one.notes[i]));
  }
}

TEST(Diagnose, StopsAllThreadsWhenReadingIsStopped) {
  const Folder folder;
  for (int i = 0; i < 20; ++i)
    folder.write(fmt::format("{:02}.log", i), nothing(100'000) + std::string(kFull));
  const auto stopped = diagnose({folder.path().string()}, {.enough = [] { return true; }, .threads = 4});
  ASSERT_EQ(stopped.inputs.size(), 20U);
  for (const auto& input : stopped.inputs) {
    EXPECT_EQ(input.remark, "reading was stopped");
    EXPECT_LT(input.bytes, 300'000U);
  }
}

TEST(Diagnose, KeepsNotesApart) {
  const Folder folder;
  const auto diagnosis = diagnose(
      {folder.write("a.log", "n1:1:2 [0] NCCL INFO Using network Socket\n" + std::string(kFull))}, {});
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].category, "disk-full");
  ASSERT_EQ(diagnosis.notes.size(), 1U);
  EXPECT_EQ(diagnosis.notes[0].category, "slow-network");
}

TEST(Diagnose, ReadsTheFilesOfAFolderInTheOrderOfTheirNames) {
  const Folder folder;
  folder.write("b.log", kFull);
  folder.write("a/z.log", "nothing\n");
  folder.write("a/b/c.txt", "");
  fs::create_directory_symlink("a", folder.path() / "link");
  const auto diagnosis = diagnose({folder.path().string()}, {});
  EXPECT_EQ(inputs_of(diagnosis, folder), (Names{"a/b/c.txt", "a/z.log", "b.log"}));
  EXPECT_EQ(diagnosis.inputs[0].lines, 0U);
  EXPECT_EQ(diagnosis.inputs[1].lines, 1U);
  EXPECT_EQ(diagnosis.findings.at(0).position, (LogPosition{2, 1}));
}

TEST(Diagnose, SaysWhatItCannotRead) {
  const Folder folder;
  const auto missing = (folder.path() / "none.log").string();
  const auto diagnosis = diagnose({missing, folder.write("a.log", kFull)}, {});
  ASSERT_EQ(diagnosis.unread.items().size(), 1U);
  EXPECT_EQ(diagnosis.unread.items()[0].message, "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(diagnosis.inputs.size(), 1U);
  EXPECT_EQ(cause_of(diagnosis.findings), "disk-full 1");
}

TEST(Diagnose, KnowsTheRankByTheNameOfTheFile) {
  const Folder folder;
  const auto of = [&](const std::string& name) { return rank_of(diagnose({folder.write(name, kFull)}, {})); };
  EXPECT_EQ(of("rank3.log"), "rank 3");
  EXPECT_EQ(of("out_Rank-12.txt"), "rank 12");
  EXPECT_EQ(of("rank4/a.log"), "");
  EXPECT_EQ(of("job.log"), "");
  EXPECT_EQ(of("attempt-1/logs/rank3.0.log"), "rank3.0");
}

/// One member of an archive, as POSIX has it.
std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(sys::kTarBlock, '\0');
  header.replace(0, name.size(), name);
  const auto size = fmt::format("{:011o}", content.size());
  header.replace(124, size.size(), size);
  header[156] = '0';
  header.replace(257, 5, "ustar");
  unsigned sum = 8 * ' ';
  for (const char letter : header) sum += static_cast<unsigned char>(letter);
  header.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header + content +
         std::string((sys::kTarBlock - content.size() % sys::kTarBlock) % sys::kTarBlock, '\0');
}

TEST(Diagnose, ReadsTheMembersOfAnArchive) {
  const Folder folder;
  const std::string end(2 * sys::kTarBlock, '\0');
  const auto file = folder.write("all.tar", tar_member("logs/rank2.log", std::string(kFull)) +
                                                tar_member("b.log", "nothing\nthe end") + end);
  const auto diagnosis = diagnose({file}, {});
  ASSERT_EQ(diagnosis.inputs.size(), 2U);
  EXPECT_EQ(diagnosis.inputs[0].name, file + "/logs/rank2.log");
  EXPECT_EQ(diagnosis.inputs[1].name, file + "/b.log");
  EXPECT_EQ(diagnosis.inputs[1].last, "the end");
  EXPECT_EQ(rank_of(diagnosis), "rank 2");
  EXPECT_TRUE(diagnosis.unread.empty());
}

TEST(Diagnose, SaysThatAnArchiveIsCut) {
  const Folder folder;
  const auto file = folder.write("all.tar", tar_member("a.log", std::string(kFull)) + "cut");
  const auto diagnosis = diagnose({file}, {});
  EXPECT_EQ(cause_of(diagnosis.findings), "disk-full 1");
  ASSERT_EQ(diagnosis.unread.items().size(), 1U);
  EXPECT_EQ(diagnosis.unread.items()[0].id, "diagnose.archive");
  EXPECT_EQ(diagnosis.unread.items()[0].severity, Severity::warning);
  EXPECT_TRUE(diagnosis.unread.items()[0].message.starts_with(file + ": "));
}

TEST(Diagnose, ReadsAFileThatIsNoArchiveHoweverItBegins) {
  const Folder folder;
  for (const std::size_t size : {511U, 512U, 513U}) {
    const std::string text(size, 'x');
    const auto diagnosis = diagnose({folder.write("a.log", text)}, {});
    ASSERT_EQ(diagnosis.inputs.size(), 1U);
    EXPECT_EQ(diagnosis.inputs[0].bytes, size);
    EXPECT_EQ(diagnosis.inputs[0].last, text);
  }
}

TEST(Diagnose, KeepsTheEndOfTheLastLineThatIsNotBlank) {
  const Folder folder;
  const auto last = [&](const std::string& text) {
    return diagnose({folder.write("a.log", text)}, {}).inputs.at(0).last;
  };
  EXPECT_EQ(last(""), "");
  EXPECT_EQ(last("\n \n"), "");
  EXPECT_EQ(last("one\ntwo"), "two");
  EXPECT_EQ(last("one\n" + std::string(1024, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(last("one\nab" + std::string(1023, 'x')), "b" + std::string(1023, 'x'));
  EXPECT_EQ(last("a\n" + std::string(300'000, 'x') + "\nthe end\n"), "the end");
  EXPECT_EQ(last("the end\n" + std::string(400'000, '\n')), "the end");
  // The last block of what is read holds the end of the line alone.
  EXPECT_EQ(last(std::string(131'072 + 512 - 3, '\n') + "abcdef"), "abcdef");
}

TEST(Diagnose, ReadsAsLongAsNobodyHasHadEnough) {
  const Folder folder;
  const auto file = folder.write("a.log", std::string(400'000, '\n') + std::string(kFull));
  Options options;
  options.enough = [] { return false; };
  auto diagnosis = diagnose({file}, options);
  EXPECT_EQ(cause_of(diagnosis.findings), "disk-full 400001");
  EXPECT_EQ(diagnosis.inputs[0].remark, "");
  options.enough = [] { return true; };
  diagnosis = diagnose({file}, options);
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.inputs[0].remark, "reading was stopped");
  EXPECT_LT(diagnosis.inputs[0].bytes, 400'000U);
}

/// A run of a learner and an engine.
class DiagnoseRun : public testing::Test {
 protected:
  DiagnoseRun() {
    folder_.write("plan.json", "{}");
    write("learner.0", "first\nthe end\n");
    write("engine.0", "nothing\n");
  }
  void write(const std::string& process, std::string_view log) {
    folder_.write("attempt-1/logs/" + process + ".log", log);
  }
  /// What is found where the summary has these members.
  [[nodiscard]] Diagnosis run(std::string_view members) const {
    const auto summary = nlohmann::ordered_json::parse(fmt::format("{{{}}}", members));
    Options options;
    const KnownSummary known{&summary};
    options.summary = &known;
    return diagnose({folder_.path().string()}, options);
  }
  /// The learner failed first, and ended so.
  [[nodiscard]] Diagnosis ended(std::string_view end, std::string_view more = "") const {
    return run(fmt::format(
        R"("exit_code": 1, "outcome": "failed", "first": "learner.0", "sentence": "the sentence", "decided_ms": 1000,
           "processes": [{{"name": "learner.0", "pid": 4711, "program": "python", "ended_ms": 900, "end": {}}}]{})",
        end, more));
  }
  /// "CLASS WEIGHT CONFIDENCE WHY" of the cause.
  static std::string told(const Diagnosis& diagnosis) {
    if (diagnosis.findings.empty()) return "nothing";
    const auto& cause = diagnosis.findings[0];
    return fmt::format("{} {} {}: {}", cause.category, cause.weight, word_of(cause.confidence), cause.why);
  }

  Folder folder_;
};

TEST_F(DiagnoseRun, TellsWhatNlaunchSaw) {
  const auto seen = [&](const char* category, bool sure) {
    return ended(R"({"code": 1})",
                 fmt::format(R"(, "explanation": {{"class": "{}", "why": "it was seen", "fix":
                                                 "do that", "sure": {}}})",
                             category, sure));
  };
  EXPECT_EQ(told(seen("not-ready", true)), "not-ready 76 sure: it was seen");
  EXPECT_EQ(told(seen("not-ready", false)), "not-ready 41 likely: it was seen");
  write("learner.0", "first\nOSError: [Errno 98] Address already in use\nthe end\n");
  EXPECT_EQ(told(seen("not-ready", false)).substr(0, 15), "port-in-use 70 ") << "its own words say more";
  const auto taken = seen("port-in-use", true);
  EXPECT_EQ(told(taken), "port-in-use 76 sure: it was seen");
  EXPECT_EQ(taken.findings[0].position.line, 2U) << "at the line that reports it";
  EXPECT_EQ(taken.findings[0].fix, "do that");
}

TEST_F(DiagnoseRun, TellsWhichSignalEndedTheFirst) {
  const std::string who = "python (pid 4711) of learner.0 ";
  EXPECT_EQ(told(ended(R"({"signal": "SIGKILL"})")),
            "process-killed 46 sure: " + who + "was killed (SIGKILL), not by nlaunch");
  EXPECT_EQ(told(ended(R"({"signal": "SIGSEGV"})")),
            "segfault-native-library 46 sure: " + who + "crashed in native code (SIGSEGV)");
  EXPECT_EQ(told(ended(R"({"signal": "SIGBUS"})")),
            "segfault-native-library 46 sure: " + who +
                "crashed in native code (SIGBUS): often because /dev/shm or a disk is full");
  EXPECT_EQ(told(ended(R"({"signal": "SIGABRT"})")),
            "aborted 46 sure: " + who + "was aborted by its own native code (SIGABRT)");
  EXPECT_EQ(told(ended(R"({"signal": "SIGTERM"})")),
            "process-terminated 46 sure: " + who + "was terminated (SIGTERM), not by nlaunch");
  EXPECT_EQ(told(ended(R"({"code": 130})")),
            "process-terminated 46 sure: " + who + "was interrupted (SIGINT), not by nlaunch");
}

TEST_F(DiagnoseRun, TellsAnEndAtTheEndOfTheLogOfThatProcess) {
  const auto diagnosis = ended(R"({"signal": "SIGKILL"})");
  const auto& cause = diagnosis.findings.at(0);
  EXPECT_EQ(cause.position, (LogPosition{0, 2}));
  EXPECT_EQ(cause.text, "the end");
  EXPECT_EQ(cause.signature, "summary");
  EXPECT_EQ(names_of(cause.culprits), "learner.0 (python, pid 4711)");
  EXPECT_TRUE(cause.fix.starts_with("find out what killed it: the kernel when memory ran out"));
}

TEST_F(DiagnoseRun, TellsOfTheOutOfMemoryKillerWhereItKilledMeanwhile) {
  EXPECT_EQ(told(ended(R"({"signal": "SIGKILL"})", R"(, "oom_kills": 1)")),
            "host-oom 46 likely: python (pid 4711) of learner.0 was killed by the kernel: the node or the "
            "memory limit of the job had no memory left");
  EXPECT_EQ(told(ended(R"({"signal": "SIGKILL"})", R"(, "oom_kills": 0)")).substr(0, 14), "process-killed");
  EXPECT_EQ(told(ended(R"({"signal": "SIGSEGV"})", R"(, "oom_kills": 1)")).substr(0, 8), "segfault");
}

TEST_F(DiagnoseRun, TellsThatTheFirstExitedWhereItSaidNothing) {
  EXPECT_EQ(told(ended(R"({"code": 3})")), "process-exited 41 unsure: the sentence");
  EXPECT_EQ(told(ended(R"({"code": 128})")), "process-exited 41 unsure: the sentence");
  EXPECT_EQ(told(ended(R"({"signal": "SIGPIPE"})")), "process-exited 41 unsure: the sentence");
  EXPECT_EQ(told(ended(R"({"code": 0})")), "ended-early 41 unsure: the sentence");
  const auto diagnosis = ended(R"({"code": 3})");
  EXPECT_EQ(names_of(diagnosis.findings[0].culprits), "learner.0");
  EXPECT_EQ(diagnosis.findings[0].fix, "its last lines say why, in a form that nlaunch does not recognize");
  EXPECT_EQ(ended(R"({"code": 0})").findings[0].fix,
            "see its last lines; a role that may exit while the others continue needs exit: ok");
}

TEST_F(DiagnoseRun, TellsWhatTheFirstSaidOfItself) {
  write("learner.0", kFull);
  const auto diagnosis = ended(R"({"code": 3})");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(told(diagnosis), "disk-full 82 sure: a disk is full");
  EXPECT_EQ(names_of(diagnosis.findings[0].culprits), "learner.0");
}

/// The second learner raised first; the first one exited first, and its log has another traceback.
constexpr std::string_view kTwoRaised = R"("exit_code": 1, "outcome": "failed", "first": "learner.1",
    "sentence": "the sentence", "decided_ms": 1000, "processes": [
      {"name": "learner.0", "ended_ms": 990, "end": {"code": 1},
       "exception": {"type": "RuntimeError", "message": "Connection closed", "raised_ms": 950}},
      {"name": "learner.1", "ended_ms": 2000, "end": {"code": 1},
       "exception": {"type": "ValueError", "message": "a NaN in the loss", "raised_ms": 900}}])";

TEST_F(DiagnoseRun, TellsTheExceptionThatTheFirstRecorded) {
  const auto traceback = [](std::string_view function, std::string_view exception) {
    return fmt::format(
        "Traceback (most recent call last):\n  File \"/job/train.py\", line 7, in {}\n    x()\n{}\n",
        function, exception);
  };
  const auto handled = traceback("retry", "KeyError: 'cache'");
  write("learner.0", traceback("gather", "RuntimeError: Connection closed"));
  write("learner.1", handled + "step 1\n");
  EXPECT_EQ(told(run(kTwoRaised)),
            "python-exception 50 likely: Python raised KeyError in retry (train.py:7) and nothing caught it")
      << "the log alone";
  folder_.write("attempt-1/errors/learner.0.log", traceback("gather", "RuntimeError: Connection closed"));
  const auto record =
      folder_.write("attempt-1/errors/learner.1.log", traceback("loss", "ValueError: a NaN in the loss"));
  const auto diagnosis = run(kTwoRaised);
  EXPECT_EQ(
      told(diagnosis),
      "python-exception 50 likely: Python raised ValueError in loss (train.py:7) and nothing caught it");
  EXPECT_EQ(diagnosis.file_of(diagnosis.findings[0]), record);
  EXPECT_EQ(diagnosis.findings[0].text, "ValueError: a NaN in the loss");
}

TEST_F(DiagnoseRun, TellsTheExceptionOfOneWhoseOutputIsOnAnotherNode) {
  const auto diagnosis = run(kTwoRaised);
  EXPECT_EQ(told(diagnosis),
            "python-exception 50 sure: Python raised ValueError in learner.1 and nothing caught it");
  EXPECT_EQ(diagnosis.findings[0].text, "ValueError: a NaN in the loss");
  EXPECT_EQ(names_of(diagnosis.findings[0].culprits), "learner.1");
}

TEST_F(DiagnoseRun, WithoutAFirstNobodyIsNamed) {
  const auto diagnosis = run(R"("exit_code": 1, "outcome": "failed", "sentence": "the sentence")");
  EXPECT_EQ(told(diagnosis), "process-exited 41 unsure: the sentence");
  EXPECT_TRUE(diagnosis.findings[0].culprits.empty());
  EXPECT_EQ(diagnosis.findings[0].position, LogPosition());
  EXPECT_EQ(diagnosis.findings[0].text, "");
}

TEST_F(DiagnoseRun, OfARunThatDidNotFailNothingIsTold) {
  EXPECT_EQ(told(run(R"("exit_code": 0, "outcome": "finished")")), "nothing");
  EXPECT_EQ(told(run(R"("exit_code": 130, "outcome": "interrupted")")), "nothing");
  write("learner.0", kFull);
  EXPECT_EQ(told(run(R"("exit_code": 0, "outcome": "finished", "processes": [{"name": "learner.0"}])")),
            "nothing");
}

TEST_F(DiagnoseRun, LeavesOutWhatWasSaidAfterTheRunWasDecided) {
  write("engine.0", "nothing\n" + std::string(kFull));
  const auto at = [&](int bytes) {
    return told(run(fmt::format(
        R"("exit_code": 1, "outcome": "failed", "first": "learner.0", "sentence": "the sentence", "decided_ms": 1000,
           "processes": [{{"name": "learner.0", "ended_ms": 900, "end": {{"code": 3}}, "log_when_decided": 0}},
                         {{"name": "engine.0", "ended_ms": 1100, "log_when_decided": {}}}])",
        bytes)));
  };
  EXPECT_EQ(at(9), "disk-full 82 sure: a disk is full");
  EXPECT_EQ(at(8), "process-exited 41 unsure: the sentence");
  // What the first says counts, whenever it stood in the file.
  write("learner.0", kFull);
  EXPECT_EQ(at(8), "disk-full 82 sure: a disk is full");
}

TEST_F(DiagnoseRun, TellsThatAProcessEndedBeforeItsLastStep) {
  const auto diagnosis = run(
      R"("exit_code": 0, "outcome": "finished", "processes": [
         {"name": "learner.0", "pid": 4711, "ended_early": "ended at step 5 of 10"}])");
  EXPECT_EQ(told(diagnosis), "ended-early 41 unsure: learner.0 ended at step 5 of 10");
  EXPECT_EQ(diagnosis.findings[0].text, "the end");
  EXPECT_EQ(names_of(diagnosis.findings[0].culprits), "learner.0 (pid 4711)");
  EXPECT_TRUE(diagnosis.findings[0].fix.starts_with("was this intended (early stopping"));
}

std::string hang(bool sure, std::string_view doing) {
  return fmt::format(
      R"("exit_code": 1, "outcome": "stalled", "sentence": "learner.0 held it up", "watch": {{"findings": [{{"verdict": {{
         "sure": {}, "culprits": [{{"process": "learner.0", "program": "python", "pid": 4711, "doing": "{}"}},
                                  {{"process": "engine.0"}}]}}}}]}})",
      sure, doing);
}

TEST_F(DiagnoseRun, TellsWhoHeldItUp) {
  auto diagnosis = run(hang(true, "computes"));
  EXPECT_EQ(told(diagnosis), "hang 72 sure: learner.0 held it up");
  EXPECT_EQ(diagnosis.findings[0].fix, "run nlaunch evidence to see what each process did");
  EXPECT_EQ(diagnosis.findings[0].text, "the end");
  EXPECT_EQ(names_of(diagnosis.findings[0].culprits), "learner.0 (python, pid 4711) and engine.0");
  diagnosis = run(hang(true, "stopped"));
  EXPECT_EQ(told(diagnosis), "process-stopped 72 sure: learner.0 held it up");
  EXPECT_EQ(diagnosis.findings[0].fix,
            "kill -CONT 4711 (SIGCONT) continues it; find out what stopped it: a debugger, a person, or "
            "shell job control");
  diagnosis = run(hang(true, "uninterruptible"));
  EXPECT_EQ(told(diagnosis), "process-stuck 72 sure: learner.0 held it up");
  EXPECT_EQ(diagnosis.findings[0].fix,
            "a file server, disk or driver does not respond: see the kernel log of that node (dmesg -T)");
  diagnosis = run(hang(true, "paused"));
  EXPECT_EQ(told(diagnosis), "hang 72 sure: learner.0 held it up");
  EXPECT_TRUE(diagnosis.findings[0].fix.starts_with("POST /resume continues it"));
}

TEST_F(DiagnoseRun, AHangThatIsNotSureExplainsLittle) {
  EXPECT_EQ(told(run(hang(false, "computes"))), "hang 41 unsure: learner.0 held it up");
  EXPECT_EQ(told(run(hang(false, "") + R"(, "lost_child": {"process": "learner.0", "name": "sh", "pid": 5})"))
                .substr(0, 17),
            "process-exited 46");
  EXPECT_EQ(told(run(hang(true, "") + R"(, "lost_child": {"process": "learner.0", "name": "sh", "pid": 5})"))
                .substr(0, 7),
            "hang 72");
  EXPECT_EQ(told(run(R"("exit_code": 1, "outcome": "stalled", "sentence": "it stood", "watch": {"findings": [
                        {"verdict": {"sure": true}}]})")),
            "hang 72 sure: it stood");
}

std::string only_culprit(std::string_view doing) {
  return fmt::format(
      R"("exit_code": 1, "outcome": "stalled", "sentence": "learner.0 held it up", "watch": {{"findings": [{{"verdict": {{
         "sure": true, "culprits": [{{"process": "learner.0", "program": "python", "pid": 4711, "doing": "{}"}}]}}}}]}})",
      doing);
}

TEST_F(DiagnoseRun, AProcessThatHeldItUpMayHaveLostAChild) {
  const auto lost = [&](std::string_view doing, std::string_view process, std::string_view end) {
    return told(
        run(only_culprit(doing) +
            fmt::format(R"(, "lost_child": {{"process": "{}", "name": "worker", "pid": 5, "end": {}}})",
                        process, end)));
  };
  constexpr auto kKilled = R"({"signal": "SIGKILL"})";
  constexpr auto kHang = "hang 72 sure: learner.0 held it up";
  EXPECT_EQ(lost("elsewhere", "learner.0", kKilled),
            "process-killed 55 likely: worker (pid 5) of learner.0 was killed (SIGKILL), not by nlaunch");
  EXPECT_EQ(lost("elsewhere", "engine.0", kKilled), kHang);
  EXPECT_EQ(lost("elsewhere", "learner.0", R"({"code": 0})"), kHang);
  EXPECT_EQ(lost("stopped", "learner.0", kKilled), "process-stopped 72 sure: learner.0 held it up");
}

TEST_F(DiagnoseRun, WhatItRepeatedToTheEndIsWhyItHeldItUp) {
  const std::string refused =
      "[RANK 0] vllm /v1/completions failed (ClientResponseError: 404, message='Not Found', "
      "url='http://127.0.0.1:24939/v1/completions'); retry 6/30 in 16s\n";
  const auto with = [&](const std::string& log) {
    write("learner.0", log);
    return told(run(only_culprit("elsewhere")));
  };
  const auto diagnosis = with(refused + refused + "the end\n");
  EXPECT_EQ(diagnosis,
            "model-not-served 73 likely: requests are answered with 404: the server does not serve the model "
            "that they name, or has no such path");
  constexpr auto kHang = "hang 72 sure: learner.0 held it up";
  EXPECT_TRUE(with(refused + "the end\n").starts_with(kHang));
  std::string much = refused + refused;
  for (int i = 0; i < 200; ++i) much += "step\n";
  EXPECT_TRUE(with(much).starts_with(kHang)) << "it got over that";
}

TEST_F(DiagnoseRun, OfALogThatIsElsewhereNothingExplainsTheHang) {
  const std::string refused = "ClientResponseError: 404, url='http://a/v1/completions'\n";
  write("engine.0", refused + refused);
  auto summary = only_culprit("elsewhere");
  summary.replace(summary.find("\"process\": \"learner.0\""), 22, "\"process\": \"learner.7\"");
  EXPECT_TRUE(told(run(summary)).starts_with("hang 72 sure")) << told(run(summary));
}

TEST_F(DiagnoseRun, TellsWhichChildWasLost) {
  const auto lost = [&](std::string_view end, std::string_view more = "") {
    return ended(R"({"code": 1})",
                 fmt::format(R"(, "lost_child": {{"process": "learner.0", "name": "worker", "pid": 5{}}}{})",
                             end, more));
  };
  EXPECT_EQ(told(lost(R"(, "end": {"signal": "SIGKILL"})")),
            "process-killed 55 sure: worker (pid 5) of learner.0 was killed (SIGKILL), not by nlaunch");
  EXPECT_EQ(told(lost(R"(, "end": {"signal": "SIGKILL"})", R"(, "oom_kills": 2)")).substr(0, 19),
            "host-oom 55 likely:");
  EXPECT_EQ(told(lost(R"(, "end": {"code": 0})")),
            "process-terminated 46 likely: worker (pid 5) of learner.0 exited normally (exit code 0), as "
            "after a SIGTERM");
  EXPECT_EQ(told(lost("")),
            "process-exited 46 likely: worker (pid 5) of learner.0 exited; Linux before 6.15 tells only its "
            "parent how");
  EXPECT_EQ(told(lost("", R"(, "oom_kills": 2)")).substr(0, 19), "host-oom 55 likely:");
  EXPECT_EQ(lost("").findings[0].text, "the end");
}

TEST_F(DiagnoseRun, TellsWhoWasAskedToEndBeforeTheRunWasDecided) {
  constexpr std::string_view kAsked =
      "(EngineCore pid=7) [shutdown] EngineCore: trigger received signal=SIGTERM\n";
  write("learner.0", "first\n" + std::string(kAsked));
  const std::string asked =
      "process-terminated 55 likely: EngineCore (pid 7) of learner.0 was terminated (SIGTERM), not by "
      "nlaunch";
  EXPECT_EQ(told(ended(R"({"code": 0})")), asked);
  EXPECT_EQ(told(ended(R"({"code": 128})")), asked);
  EXPECT_EQ(
      told(ended(R"({"code": 0})", R"(, "lost_child": {"process": "learner.0", "name": "sh", "pid": 5})")),
      asked);
  EXPECT_EQ(told(ended(R"({"signal": "SIGKILL"})")).substr(0, 14), "process-killed");
  const auto diagnosis = ended(R"({"code": 0})");
  EXPECT_EQ(diagnosis.findings[0].position, (LogPosition{0, 2}));
  EXPECT_EQ(diagnosis.findings[0].fix,
            "find out what sent SIGTERM: a person, the scheduler, or a site script");
}

// A server that loses a part asks its other parts to exit; one that is asked itself may kill them.
TEST_F(DiagnoseRun, WhoWasAskedToEndBecauseAnotherWasKilledIsNotTheCause) {
  constexpr std::string_view kSibling =
      "(EngineCore_DP0 pid=7) [shutdown] EngineCore: trigger received signal=SIGTERM\n";
  constexpr std::string_view kServer = "(APIServer pid=6) INFO [shutdown] API server: shutdown triggered\n";
  constexpr std::string_view kPassedOn =
      "(MainProcess pid=3) INFO [shutdown] Process manager: send sigterm to process ApiServer_0\n";
  const auto cause = [&](std::string_view log, std::string_view end, int pid = 5) {
    write("learner.0", log);
    return told(ended(
        R"({"code": 1})",
        fmt::format(
            R"(, "lost_child": {{"process": "learner.0", "name": "EngineCore_DP1", "pid": {}, "end": {}}})",
            pid, end)));
  };
  const std::string killed =
      "process-killed 55 sure: EngineCore_DP1 (pid 5) of learner.0 was killed (SIGKILL), not by nlaunch";
  EXPECT_EQ(cause(kSibling, R"({"signal": "SIGKILL"})"), killed);
  EXPECT_EQ(cause(kPassedOn, R"({"signal": "SIGKILL"})"), killed);
  EXPECT_EQ(cause(kServer, R"({"signal": "SIGKILL"})"),
            "process-terminated 55 likely: APIServer (pid 6) of learner.0 was terminated (SIGTERM), not by "
            "nlaunch");
  EXPECT_EQ(cause(kSibling, R"({"code": 0})").substr(0, 40), "process-terminated 55 likely: EngineCore");
  EXPECT_EQ(cause(kSibling, R"({"signal": "SIGTERM"})").substr(0, 40),
            "process-terminated 55 likely: EngineCore");
  EXPECT_EQ(cause(kSibling, R"({"signal": "SIGKILL"})", 7).substr(0, 18), "process-terminated");
  const auto forced = std::string(kPassedOn) +
                      "(MainProcess pid=3) WARNING [shutdown] Process manager: force killing remaining "
                      "process EngineCore_DP1 pid 5\n";
  EXPECT_EQ(cause(forced, R"({"signal": "SIGKILL"})").substr(0, 52),
            "process-terminated 55 likely: MainProcess (pid 3) of");
  EXPECT_EQ(cause(kPassedOn, R"({"code": 0})"),
            "process-terminated 55 likely: MainProcess (pid 3) of learner.0 was terminated (SIGTERM), not by "
            "nlaunch");
}

constexpr std::string_view kMissing = "run.sh: line 3: tool: command not found\n";

TEST(MissingProgram, IsTheCauseWhereNothingComesBehindIt) {
  const Folder folder;
  const auto cause = [&](const std::string& text) {
    const auto diagnosis = diagnose({folder.write("a.log", text)}, {});
    return cause_of(diagnosis.findings) + " " + std::to_string(diagnosis.notes.size());
  };
  const std::string missing(kMissing);
  EXPECT_EQ(cause("first\n" + missing), "entrypoint-missing 2 0");
  EXPECT_EQ(cause(missing + "\n \n"), "entrypoint-missing 1 0");
  EXPECT_EQ(cause(missing + "first\n" + missing), "entrypoint-missing 3 0");
  EXPECT_EQ(cause(missing + "more\n"), "healthy 1");
  EXPECT_EQ(cause(std::string(kFull) + missing), "disk-full 1 0");
  const auto diagnosis = diagnose({folder.write("a.log", missing)}, {});
  EXPECT_EQ(diagnosis.findings.at(0).confidence, Confidence::likely);
  EXPECT_EQ(diagnosis.findings.at(0).role, Role::cause);
}

TEST(MissingProgram, OfSeveralFilesIsThatOfTheFirst) {
  const Folder folder;
  const auto diagnosis = diagnose(
      {folder.write("a.log", "nothing\n"), folder.write("b.log", kMissing), folder.write("c.log", kMissing)},
      {});
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].position, (LogPosition{1, 1}));
}

TEST_F(DiagnoseRun, AMissingProgramIsSureWhereItsProcessEndedWithTheCodeOfShells) {
  write("learner.0", std::string(kMissing) + "more\n");
  auto diagnosis = ended(R"({"code": 127})");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].category, "entrypoint-missing");
  EXPECT_EQ(diagnosis.findings[0].confidence, Confidence::sure);
  EXPECT_TRUE(diagnosis.notes.empty());
  EXPECT_EQ(told(ended(R"({"code": 126})")), "process-exited 41 unsure: the sentence");
  // It stands at the end of another file too, which is read first.
  write("engine.0", kMissing);
  diagnosis = ended(R"({"code": 127})");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.file_of(diagnosis.findings[0]),
            (folder_.path() / "attempt-1/logs/learner.0.log").string());
  write("learner.0", "first\nmore\n");
  diagnosis = ended(R"({"code": 127})");
  EXPECT_EQ(diagnosis.findings.at(0).category, "entrypoint-missing");
  EXPECT_EQ(diagnosis.findings.at(0).confidence, Confidence::likely);
}

TEST_F(DiagnoseRun, AMissingProgramIsNoneInARunThatWentWell) {
  write("learner.0", kMissing);
  EXPECT_EQ(told(run(R"("exit_code": 0, "outcome": "failed")")), "nothing");
  EXPECT_EQ(told(run(R"("exit_code": 1, "outcome": "failed", "first": "learner.0")")).substr(0, 18),
            "entrypoint-missing");
}

}  // namespace
}  // namespace nlaunch::diagnose
