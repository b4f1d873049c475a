#include <gtest/gtest.h>

#include "unit/evidence/ranks.h"

// What PyTorch's flight recorder shows.
namespace nlaunch::evidence {
namespace {

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

/// Two groups of data-parallel ranks, 0 and 2, 1 and 3, across two of tensor-parallel ones, 0 and 1, 2 and 3:
/// what each rank has done in the group of its neighbour and in the other.
Recording crossed(int rank, std::vector<RecordedOperation> tensor, std::vector<RecordedOperation> data) {
  const int first = rank / 2 * 2;
  Recording one;
  one.rank = rank;
  one.groups[rank < 2 ? "1" : "2"] = {"tensor", {first, first + 1}, std::move(tensor)};
  one.groups[rank % 2 == 0 ? "3" : "4"] = {"data", {rank % 2, rank % 2 + 2}, std::move(data)};
  return one;
}

/// 3 was killed or stopped before the fifth collective with its neighbour, so that 2 does not come to that
/// with 0.
Evidence without_the_last() {
  const auto done = operation(4, "completed");
  const auto open = operation(5, "started");
  auto evidence = on_gpus({crossed(0, {done, operation(5, "completed")}, {done, open}),
                           crossed(1, {done, operation(5, "completed")}, {done, open}),
                           crossed(2, {done, open}, {done})});
  evidence.members.push_back(in(3, {}, ""));
  return evidence;
}

TEST(Recorder, WhoWaitsForOneWithoutARecordingIsCleared) {
  auto evidence = without_the_last();
  auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.3 (rank 3) on node0 may be the culprit: it left no recording, and rank 1 of "
            "group 4 (data) may be waiting for it; 3 others wait");
  evidence.members[3].state = 'T';
  verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "learner.3 (rank 3) on node0 is the culprit: it is stopped (state T); 3 others wait");
  evidence.members[3].state = 'X';
  verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence, "learner.3 (rank 3) on node0 is the culprit: it is gone; 3 others wait");
}

TEST(Recorder, ManyWithoutARecordingTellNothing) {
  auto evidence = on_gpus({recording(0, {operation(8, "started")})});
  evidence.members.push_back(in(1, {}, ""));
  evidence.members.push_back(in(2, {}, ""));
  EXPECT_TRUE(judge(evidence).analyses[1].accused.empty());
}

TEST(Recorder, OfTwoSizesThatOfTheGroupBesideIsTheUsualOne) {
  const auto done = operation(4, "completed");
  const auto small = operation(5, "started", "all_reduce", "[[16]] Float");
  const auto evidence =
      on_gpus({crossed(0, {done, operation(5, "completed")}, {done, operation(5, "started")}),
               crossed(1, {done, operation(5, "completed")}, {done, operation(5, "started")}),
               crossed(2, {done, operation(5, "started")}, {done}), crossed(3, {done, small}, {done})});
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{3, 2}));
}

/// Eight ranks in pairs of neighbours and in two groups of four. All pairs have completed collective 4, and
/// rank 3 enters the fifth of its pair with this operation.
Evidence eight_in_pairs(const RecordedOperation& of_third) {
  std::vector<Recording> all;
  for (int rank = 0; rank < 8; ++rank) {
    const int first = rank / 2 * 2;
    const bool in_pair = first == 2;
    auto one = recording(rank,
                         {operation(3, "completed"), operation(4, "completed"),
                          operation(5, in_pair ? "started" : "completed")},
                         std::to_string(1 + rank / 2), {first, first + 1});
    if (rank == 3) one.groups["2"].operations.back() = of_third;
    auto& across = one.groups[rank % 2 == 0 ? "5" : "6"];
    across = {"default_pg", rank % 2 == 0 ? std::vector{0, 2, 4, 6} : std::vector{1, 3, 5, 7}, {}};
    across.operations = {operation(4, "completed")};
    if (!in_pair) across.operations.push_back(operation(5, "started"));
    all.push_back(std::move(one));
  }
  return on_gpus(std::move(all));
}

TEST(Recorder, WhatTwoOrMoreGroupsBesideDidLeavesNoDoubt) {
  auto evidence = eight_in_pairs(operation(5, "started", "all_reduce", "[[16]] Float"));
  auto verdict = judge(evidence);
  EXPECT_EQ(
      verdict.sentence,
      "learner.3 (rank 3) on node0 is the culprit: it entered all_reduce [[16]] Float -> [[16]] Float as "
      "collective 5 of group 2 (default_pg), where rank 2 entered all_reduce [[1024]] Float -> [[1024]] "
      "Float; 7 others wait");
  // They disagree themselves.
  evidence.recordings["learner"][7].groups["4"].operations.back() =
      operation(5, "completed", "all_reduce", "[[16]] Float");
  verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{2, 3}));
}

TEST(Recorder, GroupsThatDidSomethingElseBeforeAreNotOfAKind) {
  // The first stage of a pipeline has a collective more: rank 2 enters it, and 3 has left it out.
  auto evidence = eight_in_pairs(operation(5, "started"));
  auto& second = evidence.recordings["learner"][2].groups["2"].operations;
  auto& third = evidence.recordings["learner"][3].groups["2"].operations;
  for (auto* of : {&second, &third}) (*of)[0] = operation(3, "completed", "all_reduce", "[[50000]] Float");
  second.back() = operation(5, "started", "all_reduce", "[[50000]] Float");
  auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{3, 2}));
  // Nor do those say anything that have not come so far.
  evidence = eight_in_pairs(operation(5, "started", "all_reduce", "[[16]] Float"));
  for (const auto rank : {4, 5, 6, 7})
    evidence.recordings["learner"][rank].groups[rank < 6 ? "3" : "4"].operations.pop_back();
  verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{3, 2}));
}

TEST(Recorder, AnotherShapeOfTheSameSizeIsNoMismatch) {
  const auto square = operation(8, "started", "all_reduce", "[[32,32]] Float");
  auto evidence = on_gpus({recording(0, {operation(8, "started")}), recording(1, {square}),
                           recording(2, {operation(7, "completed")})});
  put_elsewhere(evidence.members[2]);
  EXPECT_TRUE(judge(evidence).sure);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{2});
}

TEST(Recorder, AMajorityIsOneOfTheGroup) {
  // Of eight ranks three left a recording: 4 and 5 may both be wrong.
  std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  const auto small = operation(8, "started", "all_reduce", "[[16]] Float");
  auto evidence = on_gpus({recording(4, {small}, "0", all), recording(5, {small}, "0", all),
                           recording(6, {operation(8, "started")}, "0", all)});
  for (const auto rank : {0, 1, 2, 3, 7}) evidence.members.push_back(in(rank, {}, ""));
  EXPECT_FALSE(judge(evidence).sure);
}

TEST(Recorder, AVictimInADebuggerDoesNotHideWhoIsKnownToBeLate) {
  auto evidence = on_gpus({recording(0, {operation(8, "started")}, "0", {0, 1, 2, 3}),
                           recording(1, {operation(7, "completed")}, "0", {0, 1, 2, 3}),
                           recording(2, {operation(8, "started")}, "0", {0, 1, 2, 3})});
  put_elsewhere(evidence.members[1]);
  evidence.members.push_back(in(3, {}, "", 't'));
  const auto verdict = judge(evidence);
  EXPECT_FALSE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), (Ranks{3, 1}));
}

TEST(Recorder, ARecordingOfBeforeDoesNotShowWhoIsLateNow) {
  // PyTorch wrote that of 1 when a collective failed: it may have entered the eighth since.
  auto late = recording(1, {operation(7, "completed")});
  late.is_earlier = true;
  auto evidence =
      on_gpus({recording(0, {operation(8, "started")}), late, recording(2, {operation(8, "started")})});
  auto verdict = judge(evidence);
  EXPECT_EQ(verdict.sentence,
            "unsure: learner.1 (rank 1) on node0 may be the culprit: it left only a recording of before, and "
            "ranks 0 and 2 of group 0 (default_pg) may be waiting for it; 2 others wait");
  put_elsewhere(evidence.members[1]);  // its stack shows that it has not
  EXPECT_TRUE(judge(evidence).sure);
  // An open collective that the others have left behind is none.
  auto old = recording(1, {operation(2, "started")});
  old.is_earlier = true;
  evidence =
      on_gpus({recording(0, {operation(8, "started")}), old, recording(2, {operation(7, "completed")})});
  put_elsewhere(evidence.members[2]);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{2});
}

TEST(Recorder, WhoWaitsForARankWithoutEvidenceIsNotToBlame) {
  // The node of 3 is dead: 2 waits for it in their pair, and 0 for 2.
  auto evidence = without_the_last();
  evidence.members.pop_back();
  EXPECT_TRUE(judge(evidence).analyses[1].accused.empty());
}

TEST(Recorder, GroupsOfTheSameNameAreToldApartByTheirRanks) {
  std::vector<Recording> all;
  for (int rank = 0; rank < 4; ++rank) {
    const int first = rank / 2 * 2;
    const auto open = operation(8, rank == 1 ? "started" : rank == 0 ? "started" : "completed");
    all.push_back(recording(rank, {operation(7, "completed"), open}, "mesh_tp", {first, first + 1}));
  }
  all[1].groups["mesh_tp"].operations.pop_back();
  auto evidence = on_gpus(all);
  put_elsewhere(evidence.members[1]);
  EXPECT_TRUE(judge(evidence).sure);
  EXPECT_EQ(culprits(judge(evidence), evidence), Ranks{1});
}

TEST(Recorder, AnEarlierMismatchCountsWhereSomeHaveCompletedWhatOthersWaitIn) {
  // NCCL let a broadcast meet an all-reduce; one collective later, 2 waits for data that never come.
  auto evidence = eight_in_pairs(operation(5, "completed"));
  auto& third = evidence.recordings["learner"][3].groups["2"].operations;
  third[1] = operation(4, "completed", "broadcast");
  EXPECT_EQ(
      judge(evidence).sentence,
      "learner.3 (rank 3) on node0 is the culprit: it entered broadcast [[1024]] Float -> [[1024]] Float "
      "as collective 4 of group 2 (default_pg), where rank 2 entered all_reduce [[1024]] Float -> "
      "[[1024]] Float; 7 others wait");
  // If somebody is late, that is why others wait, not what differed once.
  third.pop_back();
  put_elsewhere(evidence.members[3]);
  EXPECT_EQ(
      judge(evidence).sentence,
      "learner.3 (rank 3) on node0 is the culprit: it has not entered collective 5 (all_reduce) of group 6 "
      "(default_pg), as ranks 1, 5 and 7 did; 7 others wait");
}

TEST(Recorder, WhoHasEndedIsAwaitedThoughItLeftNoRecording) {
  auto evidence = eight_in_pairs(operation(5, "started"));
  auto& recordings = evidence.recordings["learner"];
  // 2 and 4 left none, and nothing says why. Of 3 it is known.
  std::erase_if(recordings, [](const auto& one) { return one.rank >= 2 && one.rank <= 4; });
  evidence.members[3].state = 'X';
  evidence.members[3].pid = 0;
  evidence.members[3].ended = "exited with code 0";
  const auto verdict = judge(evidence);
  const auto& recorder = verdict.analyses[1];
  ASSERT_EQ(recorder.accused.size(), 1U);
  EXPECT_EQ(recorder.accused[0].member, 3U) << recorder.accused[0].why;
  EXPECT_EQ(recorder.accused[0].why, "is gone, and ranks 1, 5 and 7 of group 6 (default_pg) wait for it");
}

TEST(Recorder, WhoWaitsForOneOfAnotherSizeIsCleared) {
  // 2 sends less than 0 and 1; 3 waits in a pair for 0, and 4 for 1.
  const auto small = operation(8, "started", "all_reduce", "[[16]] Float");
  const auto paired = [](int rank, int other, std::vector<RecordedOperation> operations,
                         RecordedOperation world) {
    auto one = recording(rank, {std::move(world)}, "0", {0, 1, 2});
    one.groups[std::to_string(std::max(rank, other))] = {
        "pair", {std::min(rank, other), std::max(rank, other)}, std::move(operations)};
    return one;
  };
  const auto open = operation(8, "started");
  auto third = paired(3, 0, {operation(3, "started")}, open);
  auto fourth = paired(4, 1, {operation(3, "started")}, open);
  third.groups.erase("0");
  fourth.groups.erase("0");
  const auto evidence =
      on_gpus({paired(0, 3, {}, open), paired(1, 4, {}, open), recording(2, {small}), third, fourth});
  const auto verdict = judge(evidence);
  EXPECT_TRUE(verdict.sure);
  EXPECT_EQ(culprits(verdict, evidence), Ranks{2});
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

}  // namespace
}  // namespace nlaunch::evidence
