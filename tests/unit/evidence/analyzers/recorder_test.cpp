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
