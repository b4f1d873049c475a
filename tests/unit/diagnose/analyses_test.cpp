#include <gtest/gtest.h>

#include <fmt/format.h>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

std::string timeout(int rank, int seq, std::string_view op = "ALLREDUCE", int size = 16) {
  return fmt::format(
      "[rank{0}]:[E ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum={1}, "
      "OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600018 milliseconds before timing "
      "out.\n",
      rank, seq, op, size);
}

std::string enqueued(int rank, int last) {
  return fmt::format(
      "[rank{0}]:[E ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank {0}]  failure detected by "
      "watchdog at work "
      "sequence id: 7 PG status: last enqueued work: {1}, last completed work: 6\n",
      rank, last);
}

TEST(Collectives, TheRankInAnotherCollectiveIsTheCulprit) {
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 7) + timeout(2, 7, "BROADCAST")),
            "collective-desync 3: rank 2");
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 7) + timeout(2, 7, "ALLREDUCE", 8)),
            "collective-desync 3: rank 2");
}

TEST(Collectives, OfTwoTheOneBehindIsTheCulprit) {
  const auto findings = findings_of(timeout(0, 9) + timeout(1, 7));
  EXPECT_EQ(cause_of(findings), "collective-desync 2: rank 1");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
}

TEST(Collectives, TheRankThatEnqueuedLessIsTheCulprit) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) text += timeout(rank, 7) + enqueued(rank, rank == 2 ? 7 : 12);
  EXPECT_EQ(cause_of(text), "collective-desync 5: rank 2");
}

TEST(Collectives, ARankThatDidNotReportIsNamedWhereTheWorldIsKnown) {
  const auto findings = findings_of("world size: 4\n" + timeout(0, 7) + timeout(1, 7) + timeout(3, 7));
  EXPECT_EQ(cause_of(findings), "collective-timeout 2: rank 2");
  EXPECT_EQ(findings.front().why,
            "3 ranks waited 600 s for the others, the first in ALLREDUCE 7 of 16 elements; rank 2: no "
            "report: never entered it, or had ended");
}

TEST(Collectives, AReportAloneNamesNobody) {
  const auto findings = findings_of(timeout(5, 7));
  EXPECT_EQ(cause_of(findings), "collective-timeout 1");
  EXPECT_EQ(findings.front().confidence, Confidence::unsure);
}

TEST(Collectives, ATimeoutIsTheConsequenceOfAReason) {
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 7) + "[rank2]: RuntimeError: CUDA error: out of memory\n"),
            "cuda-oom 3: rank 2");
}

TEST(Collectives, GroupsOfDifferentGuidsAreNotCompared) {
  const auto in_group = [](int rank, std::string_view guid, int seq) {
    return fmt::format(
        "[PG ID 1 PG GUID {}(tp) Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
        "OpType=ALLREDUCE, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600018 milliseconds\n",
        guid, rank, seq);
  };
  EXPECT_EQ(
      findings_of(in_group(0, "11", 5) + in_group(1, "11", 5) + in_group(2, "12", 9) + in_group(3, "12", 9))
          .front()
          .category,
      "collective-timeout");
}

std::string init(int rank, std::string_view end) {
  return fmt::format(
      "n{0}:1:2 [0] NCCL INFO ncclCommInitRankConfig comm 0x5{0} rank {0} nranks 3 cudaDev 0 nvmlDev 0 busId "
      "1b000 commId 0x77 - "
      "Init {1}\n",
      rank, end);
}

TEST(NcclInit, RanksThatDidNotComeAreNamed) {
  const auto findings = findings_of(init(0, "START") + init(2, "START"));
  EXPECT_EQ(cause_of(findings), "nccl-init-incomplete 1: rank 1");
  EXPECT_EQ(findings.front().why,
            "a communicator of 3 ranks did not come up: 2 of its ranks began, none completed; 1 is not in "
            "these logs");
}

TEST(NcclInit, OneThatCompletedIsWell) {
  EXPECT_EQ(cause_of(init(0, "START") + init(0, "COMPLETE")), "healthy");
}

std::string xid(int code, std::string_view rest = "pid='<unknown>', name=<unknown>") {
  return fmt::format("[1.2] NVRM: Xid (PCI:0000:38:00): {}, {}\n", code, rest);
}

TEST(Xid, TheWorstOfAGpuIsToldWithAllOfThem) {
  const auto findings = findings_of(xid(45, "pid=12, name=python") + xid(79) + xid(154));
  EXPECT_EQ(cause_of(findings), "gpu-xid 2: pid 12 (PCI:0000:38:00)");
  EXPECT_EQ(findings.front().why,
            "Xid 79: the GPU has fallen off the bus (seen on this GPU: Xid 45, 79 and 154)");
}

TEST(Xid, OfAProgramsFaultsTheLineThatNamesItTellsMost) {
  EXPECT_EQ(cause_of(xid(13) + xid(13) + xid(43, "pid=12, name=python, Ch 00000008")),
            "gpu-xid 3: pid 12 (PCI:0000:38:00)");
}

TEST(Tracebacks, TheFirstExceptionThatNobodyKnowsIsToldWithItsRank) {
  const std::string_view text =
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 1, in <module>\n[rank3]:  "
      "   f()\n"
      "[rank3]: my.package.StrangeFailure: so it is\n";
  EXPECT_EQ(cause_of(text), "python-exception 4: rank 3");
}

TEST(Tracebacks, OneThatASignatureKnowsIsThatSignatures) {
  EXPECT_EQ(cause_of("Traceback (most recent call last):\n  File \"a.py\", line 1, in "
                     "<module>\nModuleNotFoundError: No module named 'x'\n"),
            "import-error 3");
}

constexpr std::string_view kHeading = "Traceback (most recent call last):\n";
constexpr std::string_view kFrame = "  File \"a.py\", line 1, in f\n    g()\n";

TEST(Tracebacks, WhatPythonIgnoresIsNoFailure) {
  const auto ignored = fmt::format(
      "0: Exception ignored in atexit callback: <function f at 0x7f>\n0: {}0:   File "
      "\"a.py\", line 1, in f\n0:     g()\n",
      kHeading);
  const std::string missing = "0: FileNotFoundError: [Errno 2] No such file or directory: '/a'\n";
  EXPECT_EQ(cause_of(ignored + missing), "healthy");
  EXPECT_EQ(
      cause_of(fmt::format("0: [rank3]: {}0: [rank3]:   File \"a.py\", line 1, in f\n0: [rank3]: ValueError: "
                           "28 heads\n{}{}",
                           kHeading, ignored, missing)),
      "python-exception 3: rank 3");
  EXPECT_EQ(cause_of(missing), "file-missing 1: rank 0");
}

TEST(Tracebacks, TheTimeOfEachLineIsNoPartOfIt) {
  EXPECT_EQ(
      cause_of("2025-11-21T16:07:13.555304178Z [2025-11-21 16:07:13] Scheduler hit an exception: Traceback "
               "(most recent call last):\n2025-11-21T16:07:13.555324165Z   File \"a.py\", line 1, in f\n"
               "2025-11-21T16:07:13.555327251Z     g()\n"
               "2025-11-21T16:07:13.555351446Z AssertionError: so it is\n"),
      "python-exception 4");
}

TEST(Tracebacks, OneThatAWorkerOfRayLogsIsNoFailure) {
  EXPECT_EQ(cause_of("(Worker pid=7) ERROR:2026-03-26 21:59:41,526:Traceback (most recent call last):\n"
                     "(Worker pid=7)   File \"a.py\", line 1, in f\n(Worker pid=7) TypeError: so it is\n"),
            "healthy");
}

TEST(Tracebacks, RayShowsTheFramesOfTheOtherProcessBelowItsName) {
  EXPECT_EQ(cause_of(fmt::format(
                "{}{}TimeoutError: The read operation timed out\n\nDuring handling of the "
                "above exception, another exception occurred:\n\nray::WorkerDict.init() (pid=4952, "
                "ip=192.0.2.1, actor_id=45)\n{}StrangeError: so it is\n",
                kHeading, kFrame, kFrame)),
            "python-exception 11: WorkerDict on 192.0.2.1 (pid 4952)");
}

TEST(Tracebacks, AHintThatNothingCaughtIsTheCause) {
  const std::string_view line =
      "requests.exceptions.ReadTimeout: (ReadTimeoutError(\"HTTPSConnectionPool(host="
      "'huggingface.co', port=443): Read timed out.\n";
  EXPECT_EQ(cause_of(fmt::format("{}{}{}", kHeading, kFrame, line)), "hub-unreachable 4");
  EXPECT_EQ(cause_of(line), "healthy");
}

TEST(Tracebacks, ANotebookNamesTheExceptionAboveItsFrames) {
  EXPECT_EQ(
      cause_of("NotImplementedError                       Traceback (most recent call last)\n"
               "Cell In[4], line 5\n      1 # a comment\n----> 5 import a\n\nFile /a/b.py:218, in f()\n"
               "--> 218     raise NotImplementedError(\"so it is\")\n\nNotImplementedError: so it is\n"),
      "python-exception 9");
}

TEST(Tracebacks, AnAssertionWithoutAMessageIsToldByItsLine) {
  const auto findings =
      findings_of(fmt::format("{}  File \"a.py\", line 1, in f\n    assert a == b\n"
                              "           ^^^^^^\nAssertionError\n",
                              kHeading));
  EXPECT_EQ(findings.front().why,
            "Python raised AssertionError in f (a.py:1) and nothing caught it: assert a == b");
}

TEST(Tracebacks, AMessageThatBeginsBelowTheNameIsTold) {
  const auto findings = findings_of(
      fmt::format("{}{}TrainerError: \n        The step before\n        has no end.\n", kHeading, kFrame));
  EXPECT_EQ(findings.front().why,
            "Python raised TrainerError in f (a.py:1) and nothing caught it: The step before");
}

TEST(Tracebacks, ThePlaceIsNeitherAnEntryPointNorCompiledCode) {
  const auto findings = findings_of(fmt::format(
      "{}  File \"/venv/bin/vllm\", line 4, in <module>\n    main()\n"
      "  File \"/venv/lib/python3.12/site-packages/a.py\", line 7, in load\n    open()\n"
      "  File \"python/b.pxi\", line 9, in b.call\n  File \"src/c.cc\", line 2, in void c::load(int)\n"
      "RuntimeError: no luck\n",
      kHeading));
  EXPECT_EQ(findings.front().why, "Python raised RuntimeError in load (a.py:7) and nothing caught it");
}

TEST(Tracebacks, AWeightThatDoesNotFitIsAMismatchOfShapes) {
  const auto text = [&](std::string_view source) {
    return fmt::format(
        "(Worker pid=7) {}(Worker pid=7)   File \"a.py\", line 1, in f\n(Worker pid=7)     {}\n"
        "(Worker pid=7)   File \"b.py\", line 2, in g\n(Worker pid=7)     assert a.numel() == "
        "b.numel()\n(Worker pid=7) AssertionError\n",
        kHeading, source);
  };
  EXPECT_EQ(cause_of(text("param.data.copy_(loaded_weight)")), "shape-mismatch 6: Worker (pid 7)");
  EXPECT_EQ(cause_of(text("param.data.copy_(other)")), "python-exception 6: Worker (pid 7)");
}

TEST(Nans, ALossThatIsNoNumberToTheEndIsAFailureEvenIfTheProgramEndsWell) {
  const std::string good = "step 1 | loss: 1.5 |\n";
  const std::string bad = "step 2 | loss: nan |\n";
  auto findings = findings_of(good + bad + bad + bad + "Training completed\n");
  EXPECT_EQ(cause_of(findings), "nan-loss 2");
  EXPECT_EQ(findings.front().confidence, Confidence::sure);
  findings = findings_of(good + bad);
  EXPECT_EQ(cause_of(findings), "nan-loss 2");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_EQ(cause_of(bad + good), "healthy");
}

TEST(Nans, TheLossTellsMoreThanTheGradient) {
  const std::string step = "(Main pid=1) step:2 - actor/grad_norm:nan - actor/pg_loss:nan\n";
  const auto findings = findings_of(step + step + step);
  EXPECT_EQ(cause_of(findings), "nan-loss 1: Main (pid 1)");
  EXPECT_EQ(findings.front().why, "actor/pg_loss is NaN from here to the end of the log (3 times)");
}

TEST(Nans, AGradientIsOneOnlyWhereTheLossScalerDoesNotGetOverIt) {
  const std::string good = "{'loss': '0', 'grad_norm': '2.7', 'learning_rate': '1e-05'}\n";
  const std::string bad = "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '1e-05'}\n";
  EXPECT_EQ(cause_of(good + bad), "healthy");
  EXPECT_EQ(cause_of(bad + bad + bad + good), "healthy");
  const auto findings = findings_of(good + bad + bad + bad);
  EXPECT_EQ(cause_of(findings), "nan-loss 2");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
}

TEST(Tracebacks, OneThatTellsOfAnotherProcessIsNone) {
  EXPECT_EQ(
      cause_of(
          "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyboardInterrupt\n"),
      "healthy");
}

}  // namespace
}  // namespace nlaunch::diagnose
