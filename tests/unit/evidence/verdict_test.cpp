#include "evidence/verdict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nlaunch::evidence {
namespace {

constexpr auto kC10d = "torch/distributed/distributed_c10d.py";

/// A rank that waits in an all-reduce over Gloo.
Member waiting(int rank) {
  Member member;
  member.process = fmt::format("learner.{}", rank);
  member.role = "learner";
  member.rank = rank;
  member.host = "node0";
  member.pid = 100 + rank;
  member.state = 'S';
  member.wait_channel = "futex_do_wait";
  member.python = {{"all_reduce", kC10d, 1541}, {"step", "train.py", 12}, {"<module>", "train.py", 18}};
  return member;
}

Member in(int rank, Stack python, std::string wait_channel, char state = 'S') {
  auto member = waiting(rank);
  member.python = std::move(python);
  member.wait_channel = std::move(wait_channel);
  member.state = state;
  return member;
}

Evidence of(std::vector<Member> members) {
  return {std::move(members), {}, {}, {}, {}, {}};
}

std::vector<int> culprits(const Verdict& verdict, const Evidence& evidence) {
  std::vector<int> ranks;
  for (const auto& one : verdict.culprits) ranks.push_back(evidence.members[one.member].rank.value_or(-1));
  return ranks;
}

using Ranks = std::vector<int>;

TEST(Verdict, TheOneThatSleepsOutsideOfTheCollectiveIsTheCulprit) {
  const auto evidence = of({waiting(0), in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep"), waiting(2)});
  const auto verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(verdict.sentence,
            "learner.1 (rank 1) on node0 is the culprit: it sleeps in load (train.py:5), outside of any "
            "collective; 2 others wait");
  EXPECT_EQ(verdict.victims, (std::vector<std::size_t>{0, 2}));
}

TEST(Verdict, TheOneThatWaitsIsAVictimAlsoOfTwo) {
  const auto evidence = of({in(0, {{"spin", "train.py", 7}}, "", 'R'), waiting(1)});
  const auto verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), Ranks{0});
  EXPECT_EQ(verdict.sentence,
            "learner.0 (rank 0) on node0 is the culprit: it computes in spin (train.py:7), outside of any "
            "collective; learner.1 waits for it");
}

TEST(Verdict, WhoMayWaitForItsGpuIsNotBlamedForSure) {
  auto busy = in(0, {{"step", "train.py", 9}}, "", 'R');
  busy.cuda = true;
  const auto thin = of({busy, waiting(1), waiting(2)});
  EXPECT_FALSE(judge(thin).sure);
  EXPECT_EQ(culprits(judge(thin), thin), Ranks{0});
  // Native stacks show that it waits for the GPU, as a victim of NCCL does.
  busy.native = {{"cuStreamSynchronize", "", 0}, {"main", "", 0}};
  const auto seen = of({busy, waiting(1), waiting(2)});
  EXPECT_EQ(judge(seen).sentence, "unsure: nothing tells who is to blame; 3 others wait");
}

/// One whose GPU was at work, and now is so busy and draws so many watts.
Member with_gpu(Evidence& evidence, Member member, double busy, double watts) {
  member.gpus = {fmt::format("00000000:{:02X}:00.0", evidence.gpu_use["node0"].size() + 1)};
  evidence.gpu_use["node0"][member.gpus[0]] = {
      .busy_now = busy, .busy = 100, .power_now = watts, .power = 450, .working = 500, .limit = 700};
  return member;
}

Analysis of_gpus(const Evidence& evidence) {
  const auto all = Registered<Analyzer>::all();
  return (*std::ranges::find(all, "GPUs", &Analyzer::name))->analyze(evidence);
}

std::vector<std::string> says(const Evidence& evidence) {
  return of_gpus(evidence).says;
}

TEST(Verdict, AnIdleGpuAmongThoseThatWaitInAKernelIsSuspect) {
  auto evidence = of({});
  for (int rank = 0; rank < 3; ++rank)
    evidence.members.push_back(
        with_gpu(evidence, in(rank, {}, ""), rank == 1 ? 0 : 100, rank == 1 ? 80 : 130));
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it has a GPU that is idle, while those "
            "of the others "
            "wait in a kernel");
  EXPECT_EQ(says(evidence), (std::vector<std::string>{"learner.0 and learner.2: 100 % busy at 130 W, 500 W "
                                                      "at work: a kernel that waits, as in a collective",
                                                      "learner.1: idle"}));
}

TEST(Verdict, IdleEnginesAreToldApartFromStuckLearners) {
  const auto engine = [](int index) {
    auto member = in(index, {}, "");
    member.process = fmt::format("engine.{}", index);
    member.role = "engine";
    member.rank.reset();
    return member;
  };
  auto stuck = of({});
  stuck.members = {with_gpu(stuck, in(0, {}, ""), 100, 130), with_gpu(stuck, in(1, {}, ""), 100, 131),
                   with_gpu(stuck, engine(0), 0, 80)};
  EXPECT_EQ(says(stuck).back(), "those that generate are idle and not the cause: those that train are stuck");
  auto generating = of({});
  generating.members = {with_gpu(generating, in(0, {}, ""), 0, 80), with_gpu(generating, engine(0), 97, 480)};
  EXPECT_EQ(says(generating).back(), "those that train wait for those that generate, which are at work");
  auto nothing = of({});
  nothing.members = {with_gpu(nothing, in(0, {}, ""), 0, 80), with_gpu(nothing, engine(0), 0, 80)};
  EXPECT_EQ(says(nothing).back(),
            "nothing computes: all wait for something that is no GPU (a queue, a lock, a file)");
  for (const auto* one : {&stuck, &generating, &nothing}) EXPECT_TRUE(of_gpus(*one).accused.empty());
}

TEST(Verdict, WhatTheRanksComparedIsBelievedByMajority) {
  const auto said = [](int rank, const char* own, int peer, const char* others) {
    auto member = in(rank, {}, "", 'X');
    member.ended = "exited with code 1";
    member.last_words = fmt::format(
        "RuntimeError: Detected mismatch between collectives on ranks. Rank {} is running collective: "
        "CollectiveFingerPrint(SequenceNumber=7, OpType={}), but Rank {} is running collective: "
        "CollectiveFingerPrint("
        "SequenceNumber=7, OpType={}).Collectives differ in the following aspects: 	 Op type: ...\n",
        rank, own, peer, others);
    return member;
  };
  const auto* reduce =
      "ALLREDUCE, TensorShape=[8], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float "
      "(default))";
  const auto evidence =
      of({said(0, reduce, 1, "BARRIER"), said(1, "BARRIER", 0, reduce), said(2, reduce, 1, "BARRIER")});
  EXPECT_EQ(judge(evidence).sentence,
            "learner.1 (rank 1) on node0 is the culprit: it entered SequenceNumber=7, OpType=BARRIER, where "
            "others entered "
            "SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[8], TensorDtypes=Float");
  const auto two = of({said(0, reduce, 1, "BARRIER"), said(1, "BARRIER", 0, reduce)});
  EXPECT_FALSE(judge(two).sure);
  EXPECT_EQ(culprits(judge(two), two), (Ranks{0, 1}));
}

TEST(Verdict, WhoIsMissingInTheBarrierBeforeACollectiveIsTheCulprit) {
  auto complains = in(0, {}, "", 'X');
  complains.ended = "exited with code 1";
  complains.last_words = "RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 900000 ms\n";
  const auto evidence = of({complains, in(1, {}, "futex_do_wait"), waiting(2), in(3, {}, "futex_do_wait")});
  EXPECT_EQ(judge(evidence).sentence,
            "learner.1 (rank 1) on node0 and learner.3 (rank 3) on node0 are the culprits: the first has not "
            "come to the barrier "
            "before a collective, as learner.0 says; learner.2 waits for it");
}

TEST(Verdict, AStoppedOneIsTheCulpritWhateverElseIsKnown) {
  auto stopped = waiting(2);
  stopped.state = 'T';
  const auto with_stacks = of({waiting(0), waiting(1), stopped});
  EXPECT_EQ(
      judge(with_stacks).sentence,
      "learner.2 (rank 2) on node0 is the culprit: it is stopped (state T) in step (train.py:12); 2 others "
      "wait");
  auto alone = in(2, {}, "do_signal_stop", 'T');
  const auto without = of({in(0, {}, "futex_do_wait"), in(1, {}, "futex_do_wait"), alone});
  EXPECT_TRUE(judge(without).sure);
  EXPECT_EQ(culprits(judge(without), without), Ranks{2});
}

TEST(Verdict, TheFirstThatIsGoneAndBlamesNobodyIsTheCulprit) {
  auto dead = in(1, {}, "", 'X');
  dead.ended = "exited with code 0";
  dead.ended_at = 5;
  const auto going_on = of({waiting(0), dead, waiting(2)});
  EXPECT_EQ(judge(going_on).sentence,
            "learner.1 (rank 1) on node0 is the culprit: it exited with code 0; 2 others wait");
  auto fallen = in(0, {}, "", 'X');
  fallen.ended = "exited with code 1";
  fallen.ended_at = 5.1;
  fallen.last_words =
      "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:29082\n";
  const auto all_gone = of({fallen, dead});
  EXPECT_TRUE(judge(all_gone).sure);
  EXPECT_EQ(culprits(judge(all_gone), all_gone), Ranks{1});
}

TEST(Verdict, OfTwoSizesOverGlooTheReceiverOrItsSenderIsWrong) {
  std::vector<Member> members;
  for (int rank = 0; rank < 4; ++rank) {
    members.push_back(in(rank, {}, "", 'X'));
    members.back().last_words = "Connection closed by peer [127.0.0.1]:10625";
  }
  members[3].last_words =
      "[enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. 8 vs 4";
  const auto evidence = of(members);
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{3, 0}));
}

TEST(Verdict, TheOnlyOneInAnotherCollectiveIsTheCulprit) {
  const auto other = [](int rank) {
    return in(rank, {{"all_gather", kC10d, 2282}, {"evaluate", "train.py", 30}}, "futex_do_wait");
  };
  const auto evidence = of({waiting(0), other(1), waiting(2)});
  EXPECT_EQ(judge(evidence).sentence,
            "learner.1 (rank 1) on node0 is the culprit: it waits in all_gather, called from evaluate "
            "(train.py:30), "
            "where others are in all_reduce; 2 others wait");
  // Of two, either; of more than one, or beside other roles, groups may be theirs alone.
  const auto two = of({waiting(0), other(1)});
  EXPECT_FALSE(judge(two).sure);
  EXPECT_EQ(culprits(judge(two), two).size(), 2U);
  auto engine = in(0, {{"run", "engine.py", 1}}, "ep_poll");
  engine.role = "engine";
  const auto more = of({waiting(0), other(1), waiting(2), engine});
  EXPECT_FALSE(judge(more).sure);
}

TEST(Verdict, AllInTheSameCollectiveTellNothing) {
  const auto evidence = of({waiting(0), waiting(1), waiting(2)});
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.sentence, "unsure: nothing tells who is to blame; 3 others wait");
}

TEST(Verdict, WithoutStacksTheOneUnlikeTheOthersIsACandidate) {
  const auto evidence =
      of({in(0, {}, "futex_do_wait"), in(1, {}, "hrtimer_nanosleep"), in(2, {}, "futex_do_wait")});
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it sleeps, and nothing tells where, "
            "unlike the others");
}

TEST(Verdict, OfTwoWithoutAnyCollectiveTheOneThatDoesNotWaitIsACandidate) {
  const auto evidence = of({in(0, {{"receive", "train.py", 40}}, "sk_wait_data"),
                            in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep")});
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it sleeps in load (train.py:5), outside "
            "of any "
            "collective, while others wait");
}

// -- flight recorder

RecordedOperation operation(std::int64_t sequence, const std::string& state,
                            const std::string& name = "all_reduce",
                            const std::string& sizes = "[[1024]] Float") {
  return {sequence, false, -1, name, sizes, sizes, state};
}

Recording recording(int rank, std::vector<RecordedOperation> operations, const std::string& group = "0",
                    std::vector<int> ranks = {0, 1, 2}) {
  Recording one;
  one.rank = rank;
  one.groups[group] = {"default_pg", std::move(ranks), std::move(operations)};
  return one;
}

/// Members whose stacks say nothing: each waits for its GPU.
Evidence on_gpus(std::vector<Recording> recordings) {
  std::vector<Member> members;
  for (const auto& one : recordings) {
    members.push_back(in(one.rank, {{"step", "train.py", 9}}, ""));
    members.back().cuda = true;
    members.back().native = {{"cuStreamSynchronize", "", 0}};
  }
  auto evidence = of(members);
  evidence.recordings["learner"] = std::move(recordings);
  return evidence;
}

/// It is not in the GPU's driver, nor in a collective.
void put_elsewhere(Member& member) {
  member.python = {{"load", "train.py", 5}};
  member.native = {{"_PyEval_EvalFrameDefault", "", 0}};
  member.state = 'R';
}

TEST(Recorder, WhoNeverEnteredTheCollectiveIsTheCulprit) {
  auto evidence = on_gpus({recording(0, {operation(7, "completed"), operation(8, "started")}),
                           recording(1, {operation(7, "completed")}),
                           recording(2, {operation(7, "completed"), operation(8, "scheduled")})});
  put_elsewhere(evidence.members[1]);
  const auto verdict = judge(evidence);
  EXPECT_EQ(
      verdict.sentence,
      "learner.1 (rank 1) on node0 is the culprit: it has not entered collective 8 (all_reduce) of group 0 "
      "(default_pg), as ranks 0 and 2 did; 2 others wait");
  EXPECT_EQ(
      verdict.analyses[1].says,
      std::vector<std::string>{
          "group 0 (default_pg), collective 8 (all_reduce): ranks 0 and 2 entered it, rank 1 never did"});
}

TEST(Recorder, WhoWaitsForItsGpuMayWaitForAnotherRole) {
  auto evidence = on_gpus({recording(0, {operation(8, "started")}), recording(1, {operation(7, "completed")}),
                           recording(2, {operation(8, "started")})});
  auto engine = in(0, {}, "ep_poll");
  engine.role = "engine";
  evidence.members.push_back(engine);
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), Ranks{1});
}

TEST(Recorder, WhoIsLateSinceItWaitsForAMessageIsAVictim) {
  // 0 waits in the world for 1, and 1 for a message of 2.
  auto receive = operation(7, "started", "recv");
  receive.point_to_point = true;
  receive.peer = 2;
  auto evidence =
      on_gpus({recording(0, {operation(8, "started")}), recording(1, {operation(7, "completed"), receive}),
               recording(2, {operation(7, "completed")})});
  put_elsewhere(evidence.members[2]);
  EXPECT_TRUE(judge(evidence).sure);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{2});
}

TEST(Recorder, AnotherSizeIsSeenWhereStacksAreTheSame) {
  const auto small = operation(8, "started", "all_reduce", "[[512]] Float");
  const auto evidence = on_gpus({recording(0, {operation(8, "started")}),
                                 recording(1, {operation(8, "started")}), recording(2, {small})});
  const auto verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), Ranks{2});
  EXPECT_EQ(verdict.culprits[0].why,
            "entered all_reduce [[512]] Float -> [[512]] Float as collective 8 of group 0 (default_pg), "
            "where ranks 0 "
            "and 1 entered all_reduce [[1024]] Float -> [[1024]] Float");
  const auto two =
      on_gpus({recording(0, {operation(8, "started")}, "0", {0, 1}), recording(1, {small}, "0", {0, 1})});
  EXPECT_FALSE(judge(two).sure);
  EXPECT_EQ(culprits(judge(two), two), (Ranks{0, 1}));
}

TEST(Recorder, PartsOfDifferentSizesAreNoMismatch) {
  const auto part = operation(8, "started", "all_to_all", "[[512]] Float");
  const auto evidence = on_gpus(
      {recording(0, {operation(8, "started", "all_to_all")}), recording(1, {part}), recording(2, {part})});
  EXPECT_TRUE(judge(evidence).culprits.empty());
}

TEST(Recorder, WhoIsLateInOneGroupAndWaitsInAnotherIsAVictim) {
  // 0 and 1 wait for 2 in the world; 2 waits in a pair for 3, which is nowhere.
  auto second = recording(2, {operation(3, "completed")}, "0", {0, 1, 2, 3});
  second.groups["1"] = {"pair", {2, 3}, {operation(1, "started")}};
  auto third = recording(3, {operation(3, "completed")}, "0", {0, 1, 2, 3});
  third.groups["1"] = {"pair", {2, 3}, {}};
  auto evidence = on_gpus({recording(0, {operation(4, "started")}, "0", {0, 1, 2, 3}),
                           recording(1, {operation(4, "started")}, "0", {0, 1, 2, 3}), second, third});
  put_elsewhere(evidence.members[3]);
  const auto verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), Ranks{3});
}

TEST(Recorder, ThoseWhoWaitForEachOtherAreAllCandidates) {
  auto zero = recording(0, {operation(4, "started")}, "0", {0, 1});
  zero.groups["1"] = {"other", {0, 1}, {}};
  auto one = recording(1, {}, "0", {0, 1});
  one.groups["1"] = {"other", {0, 1}, {operation(9, "started")}};
  const auto evidence = on_gpus({zero, one});
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{0, 1}));
}

// -- RAS

RasRank counted(int rank, std::int64_t reduces, std::int64_t gathers) {
  RasRank one;
  one.rank = rank;
  one.pid = 100 + rank;
  one.address = "10.0.0.1";
  one.launched = {{"AllReduce", reduces}, {"AllGather", gathers}};
  one.status = "RUNNING";
  return one;
}

Evidence told(std::vector<RasRank> ranks) {
  auto evidence = on_gpus({recording(0, {}), recording(1, {}), recording(2, {})});
  evidence.recordings.clear();
  evidence.ras = {{"2.28.9", {{"0xd1f2", 3, std::move(ranks), {}}}, {}}};
  return evidence;
}

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
            "learner.0 64 "
            "(communicator 0xd1f2): none of the two is a majority");
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

TEST(Verdict, SourcesThatDisagreeMakeItUnsure) {
  auto evidence = told({counted(0, 120, 3), counted(1, 119, 3), counted(2, 120, 3)});
  evidence.members[2] = in(2, {{"load", "train.py", 5}}, "hrtimer_nanosleep");
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{2, 1}));
}

}  // namespace
}  // namespace nlaunch::evidence
