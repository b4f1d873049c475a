#include "evidence/verdict.h"

#include <gtest/gtest.h>

#include "unit/evidence/ranks.h"

namespace nlaunch::evidence {
namespace {

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
  EXPECT_EQ(judge(seen).sentence, "unsure: nothing shows which process is to blame; 3 others wait");
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
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it has an idle GPU, while the GPUs of "
            "the others wait in a kernel");
  EXPECT_EQ(says(evidence), (std::vector<std::string>{"learner.0 and learner.2: 100 % busy at 130 W, 500 W "
                                                      "when working: a kernel that waits, as in a collective",
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
  EXPECT_EQ(says(stuck).back(),
            "the processes that generate are idle and not the cause: those that train are stuck");
  auto generating = of({});
  generating.members = {with_gpu(generating, in(0, {}, ""), 0, 80), with_gpu(generating, engine(0), 97, 480)};
  EXPECT_EQ(says(generating).back(), "the processes that train wait for those that generate, which are busy");
  auto nothing = of({});
  nothing.members = {with_gpu(nothing, in(0, {}, ""), 0, 80), with_gpu(nothing, engine(0), 0, 80)};
  EXPECT_EQ(says(nothing).back(),
            "nothing computes: all wait for something other than a GPU (a queue, a lock, a file)");
  for (const auto* one : {&stuck, &generating, &nothing}) EXPECT_TRUE(of_gpus(*one).accused.empty());
}

/// Rank 0 waits for an engine's answer, and the others wait in a collective for rank 0.
Evidence with_an_engine(Server said, Member client) {
  Member engine;
  engine.process = "engine.0";
  engine.role = "engine";
  engine.host = "node0";
  engine.state = 'S';
  engine.server = std::move(said);
  engine.connections = {{"10.0.0.1:8000", "10.0.0.1:40000"}};
  client.connections = {{"10.0.0.1:40000", "10.0.0.1:8000"}};
  return of({std::move(client), waiting(1), waiting(2), std::move(engine)});
}

TEST(Verdict, WhoWaitsForAServersAnswerPassesTheBlameOn) {
  const Stack answer{{"recv_into", "socket.py", 700}, {"generate", "train.py", 12}};
  Server stuck;
  stuck.stalled = 4;
  stuck.counts_at_once = true;
  Server silent;
  silent.core_silent = true;
  for (auto client : {in(0, answer, "wait_woken"), in(0, {}, "wait_woken")}) {
    for (const auto* native : {"", "__recv"}) {
      client.native = *native == '\0' ? Stack() : Stack{{native, "", 0}};
      const auto sure = judge(with_an_engine(stuck, client));
      EXPECT_EQ(sure.sentence,
                "engine.0 on node0 is the culprit: it has 4 requests in flight and generates nothing; 3 "
                "others wait");
      EXPECT_EQ(sure.victims, (std::vector<std::size_t>{0, 1, 2}));
      EXPECT_EQ(judge(with_an_engine(silent, client)).sentence,
                "unsure: engine.0 on node0 may be the culprit: it does not answer learner.0; 3 others wait");
      EXPECT_EQ(
          judge(with_an_engine({}, client)).sentence,
          "unsure: engine.0 on node0 and learner.0 (rank 0) on node0 may be the culprits; 2 others wait");
    }
  }
}

// A client can send its requests from another thread: its main thread waits for that one.
TEST(Verdict, OfAClientThatWaitsForItsThreadAServerInTroubleIsToBlame) {
  const auto stopped_core = [](Member client, bool stopped) {
    Server idle;
    idle.idle = true;
    auto evidence = with_an_engine(idle, std::move(client));
    evidence.members.back().parts = {
        {.pid = 7, .title = "VLLM::EngineCore_DP1", .state = stopped ? 'T' : 'S'}};
    return judge(evidence).sentence;
  };
  auto native = in(0, {}, "futex_do_wait");
  native.native = {
      {"__futex_abstimed_wait", "", 0}, {"sem_clockwait", "", 0}, {"PyThread_acquire_lock_timed", "", 0}};
  const auto python = in(0, {{"wait", "threading.py", 320}, {"generate", "train.py", 12}}, "futex_do_wait");
  for (const auto& client : {native, python}) {
    EXPECT_EQ(stopped_core(client, true),
              "engine.0 on node0 is the culprit: it has a process that is stopped (state T): "
              "VLLM::EngineCore_DP1 (pid 7); 3 others wait");
    EXPECT_TRUE(stopped_core(client, false).starts_with("learner.0 (rank 0) on node0 is the culprit"))
        << stopped_core(client, false);
  }
  const auto own = in(0, {{"reward", "train.py", 12}}, "futex_do_wait");
  EXPECT_TRUE(stopped_core(own, true).starts_with("unsure: ")) << stopped_core(own, true);
}

TEST(Verdict, OfAClientAndAnIdleServerEitherMayBeToBlame) {
  Server idle;
  idle.idle = true;
  const auto verdict = judge(with_an_engine(
      idle, in(0, {{"recv_into", "socket.py", 700}, {"generate", "train.py", 12}}, "wait_woken")));
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.0 (rank 0) on node0 and engine.0 on node0 may be the culprits; 2 others wait");
}

TEST(Verdict, AnotherSizeIsNoServersFault) {
  Server silent;
  silent.core_silent = true;
  auto evidence = with_an_engine(
      silent, in(0, {{"recv_into", "socket.py", 700}, {"generate", "train.py", 12}}, "wait_woken"));
  evidence.recordings["learner"] = {recording(0, {operation(8, "started", "all_reduce", "[[512]] Float")}),
                                    recording(1, {operation(8, "started")}),
                                    recording(2, {operation(8, "started")})};
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.analyses[1].accused, std::vector<Accused>({{0, ""}}));
  EXPECT_TRUE(verdict.analyses[1].sure);
}

TEST(Verdict, ASleepingClientOfAServerIsStillTheCulprit) {
  const auto verdict = judge(with_an_engine({}, in(0, {{"load", "train.py", 5}}, "hrtimer_nanosleep")));
  EXPECT_EQ(verdict.sentence,
            "learner.0 (rank 0) on node0 is the culprit: it sleeps in load (train.py:5), outside of any "
            "collective; 2 others wait");
}

TEST(Verdict, WhatTheRanksComparedIsBelievedByMajority) {
  const auto said = [](int rank, const char* own, int peer, const char* others) {
    auto member = in(rank, {}, "", 'X');
    member.ended = "exited with code 1";
    member.last_words = fmt::format(
        "RuntimeError: Detected mismatch between collectives on ranks. Rank {} is running collective: "
        "CollectiveFingerPrint(SequenceNumber=7, OpType={}), but Rank {} is running collective: "
        "CollectiveFingerPrint(SequenceNumber=7, OpType={}).Collectives differ in the following aspects: "
        "	 Op type: ...\n",
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
            "others entered SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[8], TensorDtypes=Float");
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
            "reached the barrier before a collective, as learner.0 reports; learner.2 waits for it");
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
            "(train.py:30), where others are in all_reduce; 2 others wait");
  // Of two, either; of more than one, or beside other roles, groups may be theirs alone.
  const auto two = of({waiting(0), other(1)});
  EXPECT_FALSE(judge(two).sure);
  EXPECT_EQ(culprits(judge(two), two).size(), 2U);
  auto engine = in(0, {{"run", "engine.py", 1}}, "ep_poll");
  engine.role = "engine";
  const auto more = of({waiting(0), other(1), waiting(2), engine});
  EXPECT_FALSE(judge(more).sure);
  // Where ranks also meet in smaller groups, it may be in one of those.
  auto grouped = evidence;
  grouped.recordings["learner"] = {recording(0, {operation(1, "completed")}, "1", {0, 1})};
  EXPECT_FALSE(judge(grouped).sure);
  grouped.recordings["learner"] = {recording(0, {operation(1, "completed")}, "1", {0, 1, 2})};
  EXPECT_TRUE(judge(grouped).sure);
}

TEST(Verdict, AllInTheSameCollectiveTellNothing) {
  const auto evidence = of({waiting(0), waiting(1), waiting(2)});
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.sentence, "unsure: nothing shows which process is to blame; 3 others wait");
}

TEST(Verdict, WithoutStacksTheOneUnlikeTheOthersIsACandidate) {
  const auto evidence =
      of({in(0, {}, "futex_do_wait"), in(1, {}, "hrtimer_nanosleep"), in(2, {}, "futex_do_wait")});
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it sleeps, location unknown, "
            "unlike the others");
}

TEST(Verdict, OfTwoWithoutAnyCollectiveTheOneThatDoesNotWaitIsACandidate) {
  const auto evidence = of({in(0, {{"receive", "train.py", 40}}, "sk_wait_data"),
                            in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep")});
  const auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it sleeps in load (train.py:5), outside "
            "of any collective, while others wait");
}

TEST(Verdict, SourcesThatDisagreeMakeItUnsure) {
  auto evidence = told({counted(0, 120, 3), counted(1, 119, 3), counted(2, 120, 3)});
  evidence.members[2] = in(2, {{"load", "train.py", 5}}, "hrtimer_nanosleep");
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{2, 1}));
}

TEST(Verdict, OfMoreThanOneThatAreGoneTheFirstWasBeforeTheOthers) {
  const auto gone = [](int rank, double at) {
    auto member = in(rank, {}, "", 'X');
    member.ended_at = at;
    return member;
  };
  auto evidence = of({gone(0, 6), gone(1, 5), waiting(2)});
  EXPECT_EQ(
      judge(evidence).sentence,
      "learner.1 (rank 1) on node0 is the culprit: it is gone, before the others; learner.2 waits for it");
  for (const double at : {6.0, 0.0}) {
    evidence.members[1].ended_at = at;
    evidence.members[0].ended_at = at;
    EXPECT_FALSE(judge(evidence).sure) << "at the same time, or at none that is known";
    EXPECT_EQ(culprits(judge(evidence), evidence), (Ranks{0, 1}));
  }
}

TEST(Verdict, WhoComplainsOfAnotherIsNotTheFirst) {
  for (const auto* words :
       {"Connection closed by peer", "Connection reset by peer", "Connection refused", "Broken pipe",
        "ncclRemoteError", "remote process exited", "Socket Timeout", "Timed out waiting"}) {
    auto complains = in(0, {}, "", 'X');
    complains.last_words = words;
    EXPECT_TRUE(judge(of({complains, waiting(1)})).culprits.empty()) << words;
  }
}

TEST(Verdict, OneThatShutsDownIsShownAndNoMore) {
  auto ending = in(0, {{"_shutdown", "threading.py", 1}}, "futex_do_wait");
  auto evidence = of({ending, in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep"), waiting(2)});
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{1}) << "counts for nothing against one that is sure";
  evidence.members.resize(1);
  EXPECT_EQ(
      judge(evidence).sentence,
      "unsure: learner.0 (rank 0) on node0 may be the culprit: it is exiting: its Python is shutting down");
}

TEST(Verdict, WhereAllAreStoppedNobodyIsBlamedForSure) {
  auto one = waiting(0);
  one.state = 'T';
  EXPECT_TRUE(judge(of({one})).sure);
  auto other = waiting(1);
  other.state = 'D';
  EXPECT_FALSE(judge(of({one, other})).sure);
  EXPECT_TRUE(judge(of({one, waiting(2), other})).sure);
}

TEST(Verdict, WhileTheRunIsEndingOnlyWhoCannotEndIsOfInterest) {
  auto evidence = of({waiting(0), in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep"), waiting(2)});
  evidence.ending = "learner.3 exited with code 1";
  auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence, "the run is ending: learner.3 exited with code 1");
  EXPECT_FALSE(verdict.sure);
  EXPECT_TRUE(verdict.victims.empty());
  evidence.members[1].state = 'D';
  verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(
      verdict.sentence,
      "the run is ending: learner.3 exited with code 1; learner.1 (rank 1) on node0 cannot exit: it is in "
      "uninterruptible sleep (state D) in load (train.py:5)");
}

TEST(MayWaitUnseen, IsWhoWaitsOrOfWhomNothingTells) {
  auto evidence =
      of({waiting(0), in(1, {{"load", "train.py", 5}}, "hrtimer_nanosleep"), in(2, {}, "futex_do_wait")});
  EXPECT_TRUE(may_wait_unseen(evidence, 0));
  EXPECT_FALSE(may_wait_unseen(evidence, 1));
  EXPECT_FALSE(may_wait_unseen(evidence, 2)) << "there is no other role for which it could wait";
  evidence.members[0].role = "engine";
  EXPECT_FALSE(may_wait_unseen(evidence, 1));
  EXPECT_TRUE(may_wait_unseen(evidence, 2));
  evidence.members[1].cuda = true;
  evidence.members[1].wait_channel = "";
  EXPECT_TRUE(may_wait_unseen(evidence, 1)) << "it may wait for its GPU";
}

}  // namespace
}  // namespace nlaunch::evidence
