#include "diagnose/origin.h"

#include <gtest/gtest.h>

namespace nlaunch::diagnose {
namespace {

std::string by(std::string_view beginning) {
  return origin_of(beginning).str();
}

TEST(WhoWrote, KnowsHowLaunchersBeginALine) {
  EXPECT_EQ(by("[rank3]: "), "rank 3");
  EXPECT_EQ(by("[rank3]:[E810 03:04:11.061 ProcessGroupNCCL.cpp:683] [Rank 3] "), "rank 3");
  EXPECT_EQ(by("[PG ID 0 PG GUID 0(default_pg) Rank 7]  "), "rank 7");
  EXPECT_EQ(by("[default3]:"), "local rank 3");
  EXPECT_EQ(by("10: "), "rank 10");
  EXPECT_EQ(by("[1,2]<stderr>:"), "rank 2");
  EXPECT_EQ(by("(WorkerDict pid=77, ip=10.0.0.4) "), "WorkerDict on 10.0.0.4 (pid 77)");
  EXPECT_EQ(by("(EngineCore_DP0 pid=77) "), "EngineCore_DP0 (pid 77)");
  EXPECT_EQ(by("[2026-08-10 10:37:28] node7:33:34 [4] transport/nvls.cc:284 "), "node7 (pid 33, GPU 4)");
  EXPECT_EQ(by("640: [nid007306:244443:0:244443] "), "rank 640 on nid007306 (pid 244443)");
  EXPECT_EQ(by("2026-08-10 10:37:28 INFO "), "");
}

TEST(WhoWrote, TakesTheLastOfTwoThatShareALine) {
  EXPECT_EQ(by("33% | 575/1725 [rank0]: x [rank1]:[E x] [Rank 1] "), "rank 1");
}

TEST(NamesOf, SaysSeveralInOnePhrase) {
  Origin first;
  first.rank = "4";
  Origin second;
  second.rank = "10";
  Origin third;
  third.rank = "0";
  EXPECT_EQ(names_of({first, second, third}), "ranks 0, 4 and 10");
  second.rank.clear();
  second.host = "node7";
  EXPECT_EQ(names_of({first, second}), "rank 4 and node7");
  EXPECT_EQ(names_of({}), "");
}

TEST(NamesOf, PutsThePeerBeforeWhoSawIt) {
  Origin origin;
  origin.peer = "10.0.0.9";
  EXPECT_EQ(names_of({origin}), "10.0.0.9");
  origin.rank = "3";
  EXPECT_EQ(names_of({origin}), "10.0.0.9 (as rank 3 saw it)");
}

}  // namespace
}  // namespace nlaunch::diagnose
