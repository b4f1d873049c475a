#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>

#include "unit/diagnose/logs.h"

namespace nlaunch::diagnose {
namespace {

std::string timeout(int rank, int seq, std::string_view op = "ALLREDUCE", int size = 16) {
  return fmt::format(
      "[rank{0}]:[E ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600018 "
      "milliseconds before timing out.\n",
      rank, seq, op, size);
}

std::string enqueued(int rank, int last) {
  return fmt::format(
      "[rank{0}]:[E ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank {0}]  failure detected by "
      "watchdog at work sequence id: 7 PG status: last enqueued work: {1}, last completed work: 6\n",
      rank, last);
}

TEST(Collectives, TheRankInAnotherCollectiveIsTheCulprit) {
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 7) + timeout(2, 7, "BROADCAST")),
            "collective-desync 3: rank 2");
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 7) + timeout(2, 7, "ALLREDUCE", 8)),
            "collective-desync 3: rank 2");
}

TEST(Collectives, OneWithoutANumberHasNone) {
  const auto findings = findings_of(
      "[rank0]:[E ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
      "WorkNCCL(OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for 600018 milliseconds "
      "before timing out.\n");
  EXPECT_EQ(cause_of(findings), "collective-timeout 1");
  EXPECT_TRUE(
      findings.front().why.starts_with("a collective (ALLREDUCE of 16 elements) did not complete in 600 s."))
      << findings.front().why;
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
            "report: never entered it, or had exited");
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
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600018 milliseconds\n",
        guid, rank, seq);
  };
  EXPECT_EQ(
      findings_of(in_group(0, "11", 5) + in_group(1, "11", 5) + in_group(2, "12", 9) + in_group(3, "12", 9))
          .front()
          .category,
      "collective-timeout");
}

TEST(Collectives, AllOfTheCauseIsToldInASentence) {
  auto findings = findings_of(timeout(0, 7) + timeout(1, 7) + timeout(2, 7, "BROADCAST"));
  EXPECT_EQ(findings.front().why,
            "3 ranks waited 600 s for the others, the first in ALLREDUCE 7 of 16 elements; rank 2: in "
            "BROADCAST 7 of 16 elements while ranks 0 and 1 waited in ALLREDUCE 7 of 16 elements");
  EXPECT_EQ(findings.front().confidence, Confidence::sure);
  EXPECT_EQ(findings.front().weight, 65);
  EXPECT_EQ(findings.front().count, 3U);
  EXPECT_EQ(findings.front().signature, "collectives");
  EXPECT_TRUE(findings.front().fix.starts_with("make every rank run the same collectives in the same order"));
  findings =
      findings_of(timeout(0, 8) + timeout(1, 7, "BROADCAST") + timeout(2, 6) + timeout(3, 8) + timeout(4, 8));
  EXPECT_EQ(cause_of(findings), "collective-desync 2: ranks 1 and 2");
  EXPECT_TRUE(
      findings.front().why.ends_with("ranks 1 and 2: in BROADCAST 7 of 16 elements while ranks 0, 3 and 4 "
                                     "waited in ALLREDUCE 8 of 16 elements"));
}

TEST(Collectives, OfAsManyInTheSameStepTheFirstRanksAreTheMeasure) {
  const auto findings = findings_of(timeout(0, 7) + timeout(1, 7, "BROADCAST"));
  EXPECT_EQ(cause_of(findings), "collective-desync 2: rank 1");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_EQ(cause_of(timeout(0, 7) + timeout(1, 9) + timeout(2, 7) + timeout(3, 9)),
            "collective-desync 1: ranks 0 and 2");
}

TEST(Collectives, TheLargestGroupIsTheMeasureEvenIfItIsBehind) {
  EXPECT_EQ(cause_of(timeout(0, 9) + timeout(1, 7) + timeout(2, 7)), "collective-desync 1: rank 0");
}

/// Of four ranks that report, how much each has enqueued.
std::string who_enqueued(std::initializer_list<int> works) {
  std::string text;
  int rank = 0;
  for (const int work : works) {
    text += timeout(rank, 7) + enqueued(rank, work);
    ++rank;
  }
  return cause_of(text);
}

TEST(Collectives, HalfOfTheRanksMayBeBehind) {
  EXPECT_EQ(who_enqueued({7, 12, 12, 12}), "collective-desync 1: rank 0");
  EXPECT_EQ(who_enqueued({12, 7, 7, 12}), "collective-desync 3: ranks 1 and 2");
  EXPECT_EQ(who_enqueued({12, 7, 7, 7}), "collective-timeout 1");
  EXPECT_EQ(who_enqueued({12, 12, 12, 12}), "collective-timeout 1");
  EXPECT_EQ(who_enqueued({12, 11, 9, 12}), "collective-desync 5: rank 2");
}

TEST(Collectives, ARankThatHasEnqueuedNothingIsBehindAndOneThatDoesNotSayIsNot) {
  EXPECT_EQ(who_enqueued({0, 5, 5, 5}), "collective-desync 1: rank 0");
  EXPECT_EQ(who_enqueued({5, 5, 5, 0}), "collective-desync 7: rank 3");
  EXPECT_EQ(who_enqueued({12, 12, -1, 12}), "collective-timeout 1");
  EXPECT_EQ(who_enqueued({12, 7, -1, 12}), "collective-desync 3: rank 1");
}

TEST(Collectives, WhatARankEnqueuedThatDidNotReportIsNoMeasure) {
  const auto findings =
      findings_of(timeout(0, 7) + enqueued(0, 12) + timeout(1, 7) + enqueued(1, 12) + enqueued(2, 30));
  EXPECT_EQ(cause_of(findings), "collective-timeout 1: rank 2");
  EXPECT_EQ(findings.front().weight, 45);
}

TEST(Collectives, WhatARankSaidFirstOfItsQueueCounts) {
  EXPECT_EQ(cause_of(timeout(0, 7) + enqueued(0, 12) + timeout(1, 7) + enqueued(1, 12) + enqueued(1, 7)),
            "collective-timeout 1");
}

std::string reports(std::initializer_list<int> ranks) {
  std::string text;
  for (const int rank : ranks) text += timeout(rank, 7);
  return text;
}

TEST(Collectives, OnlyFewerThanHaveReportedCanBeBlamedForTheirSilence) {
  EXPECT_EQ(cause_of("world size: 2\n" + reports({0})), "collective-timeout 2: rank 1");
  EXPECT_EQ(cause_of("world size: 2\n" + reports({1})), "collective-timeout 2: rank 0");
  EXPECT_EQ(cause_of("world size: 4\n" + reports({0, 1})), "collective-timeout 2");
  EXPECT_EQ(cause_of("world size: 5\n" + reports({0, 1, 4})), "collective-timeout 2: ranks 2 and 3");
  EXPECT_EQ(cause_of("world size: 4\n" + reports({0, 1, 2, 3})), "collective-timeout 2");
  EXPECT_EQ(cause_of("world size: 4\nworld size: 2\n" + reports({0, 1, 2})), "collective-timeout 3: rank 3");
}

TEST(Collectives, WhereTheWorldIsNotKnownThoseCanBeBlamedThatHaveWritten) {
  const std::string wrote = "[rank5]: ncclRemoteError: A call failed\n";
  EXPECT_EQ(cause_of(wrote + reports({0, 1})), "collective-timeout 2: rank 5");
  EXPECT_EQ(cause_of("world size: 0\n" + wrote + reports({0, 1})), "collective-timeout 3: rank 5");
  EXPECT_EQ(cause_of("world size: 1\n" + wrote + reports({0, 1})), "collective-timeout 3");
  // A world that large is not gone through.
  EXPECT_EQ(cause_of("world size: 65537\n" + wrote + reports({0, 1})), "collective-timeout 3: rank 5");
  EXPECT_EQ(cause_of("world size: 65536\n" + wrote + reports({0, 1})), "collective-timeout 3");
}

TEST(Collectives, SilentRanksWereElsewhereOnlyIfAllOfThemWere) {
  const auto closed = [](int rank) {
    return fmt::format(
        "[rank{}]: gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.7]:31485\n", rank);
  };
  auto findings = findings_of("world size: 6\n" + reports({0, 1, 2, 3}) + closed(4) + closed(5));
  EXPECT_EQ(cause_of(findings), "collective-desync 6: ranks 4 and 5");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_TRUE(findings.front().why.ends_with("ranks 4 and 5: in another operation at that time"));
  findings = findings_of("world size: 6\n" + reports({0, 1, 2, 3}) + closed(4));
  EXPECT_EQ(cause_of(findings), "collective-timeout 6: ranks 4 and 5");
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_EQ(findings.front().weight, 45);
  EXPECT_TRUE(findings.front().fix.starts_with("check what these ranks did at that time"));
}

TEST(Collectives, ACulpritHasTheHostThatIsKnownOfIt) {
  EXPECT_EQ(cause_of("2: n3:5:6 [0] ncclRemoteError: A call failed\n" + reports({0, 1})),
            "collective-timeout 2: rank 2 on n3");
}

TEST(Collectives, WithoutRanksTheReportNamesNobody) {
  const std::string report =
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
      "Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.\n";
  const auto findings = findings_of(report + report);
  EXPECT_EQ(cause_of(findings), "collective-timeout 1");
  EXPECT_EQ(findings.front().why,
            "a collective (ALLREDUCE 7) did not complete in 1803 s. The rank that reports this waited for "
            "another one: the report alone does not name the culprit");
  EXPECT_EQ(findings.front().weight, 40);
  EXPECT_EQ(findings.front().count, 1U);
  EXPECT_EQ(findings.front().confidence, Confidence::unsure);
}

TEST(Collectives, TheFirstReportIsToldWhateverItsRank) {
  const auto findings = findings_of(timeout(3, 7) + timeout(0, 7) + timeout(1, 7));
  EXPECT_EQ(cause_of(findings), "collective-timeout 1");
  EXPECT_EQ(findings.front().count, 3U);
}

TEST(Collectives, OfSeveralGroupsTheOneThatProvesMostIsTold) {
  const auto in_group = [](int rank, int group, int seq, std::string_view guid = "") {
    return fmt::format(
        "[PG ID {} {}Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600018 milliseconds\n",
        group, guid.empty() ? "" : fmt::format("PG GUID {}(tp) ", guid), rank, seq);
  };
  auto findings = findings_of(in_group(0, 1, 5) + in_group(1, 1, 5) + in_group(2, 2, 5) + in_group(3, 2, 6));
  EXPECT_EQ(cause_of(findings), "collective-desync 3: rank 2");
  EXPECT_EQ(findings.size(), 1U);
  findings = findings_of(in_group(0, 1, 5) + in_group(1, 1, 6) + in_group(2, 2, 5) + in_group(3, 2, 6));
  EXPECT_EQ(cause_of(findings), "collective-desync 1: rank 0");
  EXPECT_EQ(findings.front().count, 2U);
  // The same number of another group, by its GUID; and one GUID under two numbers.
  EXPECT_EQ(findings_of(in_group(0, 1, 5, "a") + in_group(1, 1, 9, "b")).front().category,
            "collective-timeout");
  EXPECT_EQ(cause_of(in_group(0, 1, 5, "a") + in_group(1, 2, 9, "a")), "collective-desync 1: rank 0");
}

/// An analysis by itself, which is told of lines as the scanner would.
class Told {
 public:
  explicit Told(std::string_view name) {
    for (const auto* entry : analyses()) {
      if (entry->name == name) analysis_ = entry->make();
    }
  }
  void tell(std::string_view signature, std::vector<std::pair<std::string_view, std::string_view>> groups) {
    Match match;
    match.signature = find_signature(signature);
    match.position = {0, ++line_};
    match.groups = std::move(groups);
    analysis_->on_match(match);
  }
  [[nodiscard]] std::vector<Finding> findings() const { return analysis_->findings({}); }

 private:
  std::unique_ptr<Analysis> analysis_;
  std::uint64_t line_ = 0;
};

std::string init(int rank, std::string_view end) {
  return fmt::format(
      "n{0}:1:2 [0] NCCL INFO ncclCommInitRankConfig comm 0x5{0} rank {0} nranks 3 cudaDev 0 nvmlDev 0 busId "
      "1b000 commId 0x77 - Init {1}\n",
      rank, end);
}

TEST(NcclInit, RanksThatDidNotComeAreNamed) {
  const auto findings = findings_of(init(0, "START") + init(2, "START"));
  EXPECT_EQ(cause_of(findings), "nccl-init-incomplete 1: rank 1");
  EXPECT_EQ(
      findings.front().why,
      "a communicator of 3 ranks did not initialize: 2 of its ranks started, none completed; 1 is not in "
      "these logs");
}

TEST(NcclInit, OneThatCompletedIsWell) {
  EXPECT_EQ(cause_of(init(0, "START") + init(0, "COMPLETE")), "healthy");
}

std::string init_of(std::string_view rank, std::string_view size, std::string_view end,
                    std::string_view id = "0x77") {
  return fmt::format(
      "n1:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5 rank {} nranks {} cudaDev 0 commId {} - Init {}\n",
      rank, size, id, end);
}

TEST(NcclInit, SeveralThatDidNotComeAreNamed) {
  const auto findings = findings_of(init_of("1", "4", "START") + init_of("3", "4", "START"));
  EXPECT_EQ(cause_of(findings), "nccl-init-incomplete 1: ranks 0 and 2");
  EXPECT_EQ(findings.front().why,
            "a communicator of 4 ranks did not initialize: 2 of its ranks started, none completed; 0 and 2 "
            "are not in these logs");
  EXPECT_EQ(findings.front().fix,
            "read the logs of those ranks: they failed earlier, hang, or were not started");
  EXPECT_EQ(findings.front().confidence, Confidence::unsure);
  EXPECT_EQ(findings.front().weight, 42);
  EXPECT_EQ(findings.front().count, 2U);
}

TEST(NcclInit, OfManyThatDidNotComeSoManyAreCulprits) {
  EXPECT_EQ(findings_of(init_of("0", "257", "START")).front().culprits.size(), 256U);
  EXPECT_EQ(findings_of(init_of("0", "8192", "START")).front().culprits.size(), 256U);
}

TEST(NcclInit, WhereAllCameTheNetworkIsToBlame) {
  const auto findings = findings_of(init_of("0", "2", "START") + init_of("1", "2", "START"));
  EXPECT_EQ(cause_of(findings), "nccl-init-incomplete 1");
  EXPECT_EQ(findings.front().why,
            "a communicator of 2 ranks did not initialize: 2 of its ranks started, none completed");
  EXPECT_TRUE(findings.front().fix.starts_with("all ranks arrived: check their network"));
}

TEST(NcclInit, EachCommunicatorCountsForItself) {
  EXPECT_EQ(cause_of(init_of("0", "2", "COMPLETE")), "healthy");
  EXPECT_EQ(cause_of(init_of("0", "2", "START") + init_of("0", "2", "COMPLETE", "0x78")),
            "nccl-init-incomplete 1: rank 1");
  EXPECT_EQ(cause_of(init_of("0", "2", "START", "0x76") + init_of("0", "2", "COMPLETE", "0x76") +
                     init_of("1", "2", "START")),
            "nccl-init-incomplete 3: rank 0");
}

TEST(NcclInit, ALineWithNumbersThatCannotBeIsNone) {
  EXPECT_EQ(cause_of(init_of("99999999999", "4", "START")), "healthy");
  EXPECT_EQ(cause_of(init_of("0", "99999999999", "START")), "healthy");
  EXPECT_EQ(cause_of("n1:1:2 [0] NCCL INFO comm 0x2aab rank 7 nranks 16 cudaDev 7 - Init COMPLETE\n"),
            "healthy");
}

TEST(NcclInit, SoManyCommunicatorsAreKept) {
  Told told("nccl-init");
  const auto tell = [&](int id, std::string_view signature) {
    const auto comm = std::to_string(id);
    told.tell(signature, {{"comm", comm}, {"rank", "0"}, {"world", "2"}});
  };
  for (int id = 0; id < 4096; ++id) {
    tell(id, "nccl.init-start");
    tell(id, "nccl.init-complete");
  }
  tell(4096, "nccl.init-start");
  EXPECT_TRUE(told.findings().empty());
  Told fewer("nccl-init");
  for (int id = 0; id < 4096; ++id) {
    const auto comm = std::to_string(id);
    fewer.tell(id < 4095 ? "nccl.init-complete" : "nccl.init-start",
               {{"comm", comm}, {"rank", "0"}, {"world", "2"}});
  }
  EXPECT_EQ(fewer.findings().size(), 1U);
}

TEST(NcclInit, SoManyRanksAreKept) {
  Told told("nccl-init");
  for (int rank = 0; rank < 65537; ++rank) {
    const auto number = std::to_string(rank);
    told.tell("nccl.init-start", {{"comm", "0x7"}, {"rank", number}, {"world", "65540"}});
  }
  const auto findings = told.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].count, 65536U);
  EXPECT_TRUE(findings[0].culprits.empty());
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

constexpr std::string_view kNamed = "pid=12, name=python, Ch 00000008";

/// "LINE WEIGHT WHY" of what is told of a GPU.
std::string xids(std::string_view text) {
  const auto findings = findings_of(text);
  if (findings.size() != 1) return "";
  return fmt::format("{} {} {}", findings[0].position.line, findings[0].weight, findings[0].why);
}

TEST(Xid, OneAloneIsToldByItsMeaning) {
  const auto findings = findings_of(xid(79));
  EXPECT_EQ(findings.front().why, "Xid 79: the GPU has fallen off the bus");
  EXPECT_EQ(findings.front().fix, "drain the node and reboot it; replace the GPU if the fault returns");
  EXPECT_EQ(findings.front().weight, 90);
  EXPECT_EQ(cause_of(findings), "gpu-xid 1: PCI:0000:38:00");
  EXPECT_EQ(findings_of(xid(79) + xid(79)).front().why, "Xid 79: the GPU has fallen off the bus");
  EXPECT_EQ(findings_of(xid(79) + xid(79)).front().count, 2U);
}

TEST(Xid, WeighsAsMuchAsItSaysOfTheHardware) {
  EXPECT_EQ(findings_of(xid(13)).front().weight, 63);
  EXPECT_EQ(findings_of(xid(43)).front().weight, 62);
  EXPECT_EQ(findings_of(xid(45)).front().weight, 20);
  EXPECT_EQ(findings_of(xid(109)).front().weight, 89);
  EXPECT_EQ(findings_of(xid(48)).front().weight, 90);
  EXPECT_EQ(findings_of(xid(999)).front().weight, 80);
  EXPECT_EQ(findings_of(xid(999)).front().why, "Xid 999: the driver reported a GPU fault");
}

TEST(Xid, OfEqualOnesTheFirstIsTold) {
  EXPECT_EQ(xids(xid(79) + xid(48)),
            "1 90 Xid 79: the GPU has fallen off the bus (seen on this GPU: Xid 79 and 48)");
  EXPECT_EQ(xids(xid(48) + xid(45)),
            "1 90 Xid 48: a double-bit error in the GPU's memory (seen on this GPU: Xid 48 and 45)");
}

TEST(Xid, ALineThatNamesTheProcessIsToldOfAProgramsFaultsAlone) {
  const std::string of_13 =
      "Xid 13: a kernel of the program accessed memory out of range, or executed an illegal instruction";
  const std::string of_43 = "Xid 43: the GPU stopped a program that had failed";
  EXPECT_EQ(xids(xid(13) + xid(43, kNamed)), "2 63 " + of_43 + " (seen on this GPU: Xid 13 and 43)");
  EXPECT_EQ(xids(xid(13) + xid(43)), "1 63 " + of_13 + " (seen on this GPU: Xid 13 and 43)");
  EXPECT_EQ(xids(xid(13, kNamed) + xid(43, kNamed)), "1 63 " + of_13 + " (seen on this GPU: Xid 13 and 43)");
  EXPECT_EQ(xids(xid(13) + xid(13, kNamed) + xid(43, kNamed)),
            "2 63 " + of_13 + " (seen on this GPU: Xid 13 and 43)");
  EXPECT_EQ(xids(xid(13) + xid(45, kNamed)), "1 63 " + of_13 + " (seen on this GPU: Xid 13 and 45)");
  EXPECT_EQ(xids(xid(43) + xid(43, kNamed)), "1 62 " + of_43);
  EXPECT_EQ(xids(xid(48) + xid(13, kNamed)),
            "1 90 Xid 48: a double-bit error in the GPU's memory (seen on this GPU: Xid 48 and 13)");
}

TEST(Xid, ThePidIsThatOfTheLastLineThatNamesOne) {
  EXPECT_EQ(cause_of(xid(79) + xid(45, "pid=12, name=a") + xid(45, "pid=13, name=b") + xid(45)),
            "gpu-xid 1: pid 13 (PCI:0000:38:00)");
  EXPECT_EQ(cause_of("NVRM: Xid (PCI:0000:38:00): 79\n"), "gpu-xid 1: PCI:0000:38:00");
}

TEST(Xid, OfSoManyGpusIsToldAtMost) {
  Told told("xid");
  for (int gpu = 0; gpu < 1025; ++gpu) {
    const auto pci = std::to_string(gpu);
    told.tell("kernel.xid", {{"pci", pci}, {"code", "79"}});
  }
  told.tell("kernel.xid", {{"pci", "0"}, {"code", "48"}});
  const auto findings = told.findings();
  ASSERT_EQ(findings.size(), 1024U);
  EXPECT_EQ(findings[0].count, 2U);
}

TEST(Nans, ALossIsSureFromTheThirdStepOn) {
  const std::string bad = "step 2 | loss: nan |\n";
  auto findings = findings_of(bad + bad + bad);
  EXPECT_EQ(findings.front().confidence, Confidence::sure);
  EXPECT_EQ(findings.front().weight, 56);
  findings = findings_of(bad + bad);
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_EQ(findings.front().weight, 55);
  EXPECT_EQ(findings.front().why, "loss is NaN from here to the end of the log (2 times)");
  EXPECT_EQ(findings_of(bad).front().why, "loss is NaN from here to the end of the log (1 time)");
}

TEST(Nans, AGradientCountsFromTheThirdStepOnAndIsNeverSure) {
  const std::string bad = "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '1e-05'}\n";
  EXPECT_EQ(cause_of(bad + bad), "healthy");
  const auto findings = findings_of(bad + bad + bad + bad);
  EXPECT_EQ(findings.front().confidence, Confidence::likely);
  EXPECT_EQ(findings.front().weight, 55);
  EXPECT_EQ(findings.front().why, "grad_norm is NaN from here to the end of the log (4 times)");
}

TEST(Nans, AStepThatSaysItTwiceIsOneStep) {
  EXPECT_EQ(findings_of("first\nloss: nan | loss: nan\nloss: nan | loss: nan\n").front().count, 2U);
}

TEST(Nans, ANumberIsLookedForWithinSoManyLines) {
  EXPECT_EQ(cause_of("loss: nan\n" + nothing(399) + "loss: 1.5\n"), "healthy");
  EXPECT_EQ(cause_of("loss: nan\n" + nothing(400) + "loss: 1.5\n"), "nan-loss 1");
  EXPECT_EQ(cause_of("loss: nan\n" + nothing(390) + "loss: nan\n" + nothing(390) + "loss: 1.5\n"), "healthy");
}

TEST(Nans, OnlyANumberOfTheSameNameAndSpeakerEndsIt) {
  EXPECT_EQ(cause_of("[rank0]: loss: nan\n[rank1]: loss: 1.5\n"), "nan-loss 1: rank 0");
  EXPECT_EQ(cause_of("[rank0]: loss: nan\n[rank0]: loss: 1.5\n"), "healthy");
  EXPECT_EQ(cause_of("loss: nan\nother/loss: 1.5\n"), "nan-loss 1");
  EXPECT_EQ(cause_of("a/loss: nan\na/loss: -1.5\n"), "healthy");
  const auto findings = findings_of({{"loss: nan\n", Origin()}, {"loss: nan\nloss: 1.5\n", Origin()}});
  EXPECT_EQ(cause_of(findings), "nan-loss 1");
  EXPECT_EQ(findings.front().position.file, 0U);
}

TEST(Nans, WhoSpeaksIsSaidAtTheBeginningOfALine) {
  const std::string speaks = " (Main pid=1)";
  EXPECT_EQ(cause_of(std::string(47, '-') + speaks + " loss: nan\nloss: 1.5\n"), "nan-loss 1: Main (pid 1)");
  EXPECT_EQ(cause_of(std::string(48, '-') + speaks + " loss: nan\nloss: 1.5\n"), "healthy");
}

TEST(Nans, OfSoManyProcessesIsToldAtMost) {
  std::string text;
  for (int rank = 0; rank < 65; ++rank) text += fmt::format("[rank{}]: loss: nan\n", rank);
  EXPECT_EQ(findings_of(text).front().count, 64U);
  EXPECT_EQ(findings_of(text + "[rank0]: loss: nan\n").front().count, 65U);
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

}  // namespace
}  // namespace nlaunch::diagnose
