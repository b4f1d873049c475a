#include <gtest/gtest.h>

#include <algorithm>

#include "unit/evidence/ranks.h"

// What NCCL's RAS says.
namespace nlaunch::evidence {
namespace {

TEST(RasAnalyzer, WhoLagsIsTheCulprit) {
  auto evidence = told({counted(0, 120, 3), counted(1, 119, 3), counted(2, 120, 3)});
  EXPECT_FALSE(judge(evidence).sure);  // it waits for its GPU, for whatever
  for (auto& member : evidence.members) member.python = member.native = {};
  const auto verdict = judge(evidence);
  EXPECT_EQ(
      verdict.sentence,
      "learner.1 (rank 1) on node0 is the culprit: it has launched 119 AllReduce, most ranks of communicator "
      "0xd1f2 120");
}

TEST(RasAnalyzer, OneOfTwoIsNoMajority) {
  auto evidence = told({counted(0, 64, 3), counted(1, 63, 3)});
  evidence.ras.front().communicators.front().size = 2;
  evidence.members.pop_back();
  for (auto& member : evidence.members) member.python = member.native = {};
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it has launched 63 AllReduce, and "
            "learner.0 64 (communicator 0xd1f2): neither is a majority");
}

TEST(RasAnalyzer, WhoDoesNotAnswerIsTheCulprit) {
  auto silent = counted(2, 0, 0);
  silent.launched.clear();
  silent.silent = true;
  const auto evidence = told({counted(0, 120, 3), counted(1, 120, 3), silent});
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{2});
}

TEST(RasAnalyzer, EqualCountsSayNothing) {
  const auto evidence = told({counted(0, 120, 3), counted(1, 120, 3), counted(2, 120, 3)});
  EXPECT_TRUE(judge(evidence).culprits.empty());
}

Analysis of_ras(const Evidence& evidence) {
  const auto all = Registered<Analyzer>::all();
  return (*std::ranges::find(all, "NCCL RAS", &Analyzer::name))->analyze(evidence);
}

std::vector<int> ranks_of(const Analysis& analysis, const Evidence& evidence) {
  std::vector<int> ranks;
  for (const auto& one : analysis.accused) ranks.push_back(*evidence.members[one.member].rank);
  return ranks;
}

/// Nothing but RAS tells what they do.
Evidence without_stacks(std::vector<RasRank> ranks) {
  auto evidence = told(std::move(ranks));
  for (auto& member : evidence.members) member.python = member.native = {};
  return evidence;
}

TEST(RasAnalyzer, SaysHowARankIsMissing) {
  struct Case {
    void (*change)(RasRank&);
    const char* says;
  };
  for (const auto& [change, says] : {Case{[](RasRank& rank) { rank.dead = true; }, "is considered dead"},
                                     Case{[](RasRank& rank) { rank.silent = true; }, "does not answer"},
                                     Case{[](RasRank& rank) { rank.status = "NOCOMM"; }, "has left"},
                                     Case{[](RasRank& rank) { rank.status = "ABORT"; }, "has left"}}) {
    auto missing = counted(2, 120, 3);
    change(missing);
    const auto evidence = without_stacks({counted(0, 120, 3), counted(1, 120, 3), missing});
    const auto analysis = of_ras(evidence);
    EXPECT_TRUE(analysis.sure);
    ASSERT_EQ(ranks_of(analysis, evidence), Ranks{2});
    EXPECT_EQ(analysis.accused[0].why, fmt::format("{} (communicator 0xd1f2)", says));
    EXPECT_EQ(analysis.says,
              std::vector<std::string>{fmt::format("communicator 0xd1f2: learner.2 {}", says)});
  }
}

TEST(RasAnalyzer, ProcessesThatAreMissingAreToldApart) {
  auto evidence = without_stacks({counted(0, 120, 3), counted(1, 120, 3), counted(2, 120, 3)});
  auto dead = counted(1, 0, 0);
  dead.dead = true;
  auto silent = counted(-1, 0, 0);
  silent.pid = 99;
  evidence.ras[0].processes = {dead, silent};
  const auto analysis = of_ras(evidence);
  EXPECT_EQ(ranks_of(analysis, evidence), Ranks{1});
  EXPECT_EQ(analysis.accused[0].why, "is considered dead by NCCL");
  EXPECT_EQ(analysis.says, (std::vector<std::string>{"process 101 on 10.0.0.1 is considered dead by NCCL",
                                                     "process 99 on 10.0.0.1 does not answer NCCL"}));
}

// Text lists outliers alone, and says what the others have launched.
TEST(RasAnalyzer, OfTextTheUsualCountIsToldAndNobodyIsSeenToWait) {
  auto evidence = without_stacks({counted(1, 119, 3)});
  evidence.ras[0].communicators[0].usual = {{"AllReduce", 120}, {"AllGather", 3}};
  const auto analysis = of_ras(evidence);
  EXPECT_TRUE(analysis.sure);
  EXPECT_EQ(ranks_of(analysis, evidence), Ranks{1});
  EXPECT_EQ(analysis.says, std::vector<std::string>{
                               "communicator 0xd1f2: learner.1 has launched 119 AllReduce, most ranks 120"});
}

TEST(RasAnalyzer, InTextTheRanksThatAgreeAreCounted) {
  auto evidence = without_stacks({});
  const auto text = [](int others) {
    return fmt::format(
        "NCCL version 2.27.7 compiled with CUDA 12.9\n"
        "#0-0 (d1f2) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  {} ranks have launched up to operation 120\n"
        "  Rank 1 has launched up to operation 119 -- GPU 1 managed by process 101 on node 10.0.0.1\n",
        others);
  };
  evidence.ras = {read_ras(text(7)).value()};
  EXPECT_TRUE(of_ras(evidence).sure);
  EXPECT_EQ(of_ras(evidence).says, std::vector<std::string>{"communicator d1f2: learner.1 has launched 119 "
                                                            "AllReduce, most ranks 120"});
  evidence.ras = {read_ras(text(1)).value()};
  EXPECT_FALSE(of_ras(evidence).sure);
}

TEST(RasAnalyzer, WhoIsAheadIsNotWaitedFor) {
  const auto evidence = without_stacks({counted(0, 120, 3), counted(1, 121, 3), counted(2, 120, 3)});
  const auto analysis = of_ras(evidence);
  EXPECT_TRUE(analysis.accused.empty());
  EXPECT_EQ(analysis.says.size(), 1U);
}

// One all-gather more and one all-reduce less: it is in another operation, which is certain though it waits.
TEST(RasAnalyzer, WhoIsBehindInOneAndAheadInAnotherIsInAnotherOperation) {
  auto evidence = told({counted(0, 120, 3), counted(1, 119, 4), counted(2, 120, 3)});
  EXPECT_TRUE(of_ras(evidence).sure);
  EXPECT_EQ(ranks_of(of_ras(evidence), evidence), Ranks{1});
  evidence.members.pop_back();
  evidence.ras[0].communicators[0].ranks.pop_back();
  evidence.ras[0].communicators[0].size = 2;
  EXPECT_FALSE(of_ras(evidence).sure) << "of two, either";
}

TEST(RasAnalyzer, TheMoreAreNotBlamedForSure) {
  const auto evidence = without_stacks({counted(0, 120, 3), counted(1, 119, 3), counted(2, 118, 3)});
  EXPECT_FALSE(of_ras(evidence).sure);
  EXPECT_EQ(ranks_of(of_ras(evidence), evidence), (Ranks{1, 2}));
}

TEST(RasAnalyzer, APidIsOfItsHost) {
  auto evidence = without_stacks({counted(0, 120, 3), counted(1, 119, 3), counted(2, 120, 3)});
  evidence.members[0].pid = evidence.members[1].pid;
  EXPECT_TRUE(of_ras(evidence).accused.empty()) << "two have it";
  EXPECT_EQ(of_ras(evidence).says[0],
            "communicator 0xd1f2: rank 1 (pid 101 on 10.0.0.1) has launched 119 AllReduce, most ranks 120");
  evidence.hosts = {{"10.0.0.1", "node0"}};
  evidence.members[0].host = "node9";
  EXPECT_EQ(ranks_of(of_ras(evidence), evidence), Ranks{1});
  evidence.members[0].pid = 99;
  evidence.members[1].pid = 5;
  evidence.members[1].pids = {5, 101};
  EXPECT_EQ(ranks_of(of_ras(evidence), evidence), Ranks{1}) << "of its tree";
  evidence.members[1].pids = {5};
  evidence.ras[0].communicators[0].ranks[1].pid = 0;
  evidence.members[1].pid = 0;
  EXPECT_TRUE(of_ras(evidence).accused.empty()) << "0 is not told";
}

TEST(RasAnalyzer, SaysEachThingOnce) {
  auto evidence = without_stacks({counted(0, 120, 3), counted(1, 119, 3), counted(2, 120, 3)});
  evidence.ras.push_back(evidence.ras[0]);
  EXPECT_EQ(of_ras(evidence).says.size(), 1U);
}

/// What ranks have launched in a communicator, by member.
RasCommunicator launched(const std::string& hash, const std::map<int, std::int64_t>& counts) {
  RasCommunicator communicator{hash, static_cast<int>(counts.size()), {}, {}};
  for (const auto& [member, count] : counts) communicator.ranks.push_back(counted(member, count, 3));
  return communicator;
}

/// Eight ranks of which nothing but RAS tells what they do.
Evidence in_groups(std::vector<RasCommunicator> communicators) {
  std::vector<Recording> none;
  for (int rank = 0; rank < 8; ++rank) none.push_back(recording(rank, {}));
  auto evidence = on_gpus(std::move(none));
  evidence.recordings.clear();
  for (auto& member : evidence.members) member.python = member.native = {};
  evidence.ras = {{"2.28.9", std::move(communicators), {}}};
  return evidence;
}

TEST(RasAnalyzer, OneThatIsBehindMayBeStuckInAPairThatTheOtherHasLeft) {
  // Either 0 is elsewhere, or 1 sent another size in their fifth collective and went on without it.
  auto evidence = in_groups({launched("0xa0", {{0, 5}, {1, 6}}), launched("0xa1", {{2, 5}, {3, 6}}),
                             launched("0xb0", {{0, 4}, {2, 5}, {4, 5}, {6, 5}})});
  EXPECT_FALSE(judge(evidence).sure);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{0});
  put_elsewhere(evidence.members[0]);
  EXPECT_TRUE(judge(evidence).sure);
}

TEST(RasAnalyzer, TwoThatAreLateMayWaitForEachOther) {
  // 2 and 3 are stuck in their pair, and so each is late in its other group.
  const auto stuck =
      in_groups({launched("0xa1", {{2, 5}, {3, 5}}), launched("0xb0", {{0, 5}, {2, 4}, {4, 5}, {6, 5}}),
                 launched("0xb1", {{1, 5}, {3, 4}, {5, 5}, {7, 5}})});
  EXPECT_FALSE(judge(stuck).sure);
  EXPECT_EQ(culprits(judge(stuck), stuck), (Ranks{2, 3}));
  // RAS does not count messages: one of two may wait for the other's.
  auto late = in_groups({launched("0xc0", {{0, 5}, {1, 5}, {2, 4}, {3, 4}, {4, 5}, {5, 5}, {6, 5}, {7, 5}})});
  EXPECT_FALSE(judge(late).sure);
  for (const auto i : {2, 3}) put_elsewhere(late.members[i]);
  EXPECT_TRUE(judge(late).sure);
  EXPECT_EQ(culprits(judge(late), late), (Ranks{2, 3}));
}

TEST(RasAnalyzer, WhoDoesNotAnswerIsNotTakenForOneThatIsLate) {
  auto communicator = launched("0xc0", {{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 4}, {6, 5}, {7, 5}});
  communicator.ranks[0].launched.clear();
  communicator.ranks[0].silent = true;
  auto evidence = in_groups({communicator});
  evidence.members[0].state = 't';  // a debugger is attached to one that waits
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{0, 5}));
  EXPECT_EQ(ranks_of(of_ras(evidence), evidence), Ranks{5});
}

TEST(RasAnalyzer, RanksWithoutCountsAreNoMajority) {
  auto communicator = launched("0xc0", {{0, 6}, {1, 5}, {2, 0}, {3, 0}});
  for (const auto i : {2, 3}) {
    communicator.ranks[i].launched.clear();
    communicator.ranks[i].silent = true;
  }
  const auto evidence = in_groups({communicator});
  EXPECT_FALSE(judge(evidence).sure);
  EXPECT_EQ(
      of_ras(evidence).says.front(),
      "communicator 0xc0: learner.1 has launched 5 AllReduce, learner.0 6; neither is a majority: compare "
      "where each is in its program");
}

TEST(RasAnalyzer, CountsDoNotOutweighARankThatHasEnded) {
  auto evidence = in_groups({launched("0xb1", {{1, 5}, {3, 4}, {5, 5}, {7, 5}})});
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{3});
  evidence.members[2].state = 'X';
  evidence.members[2].pid = 0;
  evidence.members[2].pids = {};
  evidence.members[2].ended = "exited with code 0";
  EXPECT_TRUE(judge(evidence).sure);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{2});
}

}  // namespace
}  // namespace nlaunch::evidence
