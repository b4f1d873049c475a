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

TEST(WhoWrote, KnowsHowLoggersNameTheRank) {
  EXPECT_EQ(by("[1,12]:"), "rank 12");
  EXPECT_EQ(by("[trainer rank=3/16] "), "rank 3");
  EXPECT_EQ(by("[2026-08-10 Rank 4] "), "rank 4");
  EXPECT_EQ(by("(VllmWorker rank=3 pid=77) "), "rank 3 (VllmWorker, pid 77)");
  EXPECT_EQ(by("(raylet) "), "");
}

TEST(WhoWrote, ReadsARankWithoutItsLeadingZeros) {
  EXPECT_EQ(by("[rank00]: "), "rank 0");
  EXPECT_EQ(by("[rank07]: "), "rank 7");
  EXPECT_EQ(by("[rank010]: "), "rank 10");
  EXPECT_EQ(by("n1:007:8 [0] "), "n1 (pid 007, GPU 0)");
}

TEST(WhoWrote, LooksForSrunsLabelAtTheBeginningAlone) {
  EXPECT_EQ(by("took 10: "), "");
  EXPECT_EQ(by("3: took 10: "), "rank 3");
}

TEST(WhoWrote, TakesTheLastOfTwoThatShareALine) {
  EXPECT_EQ(by("33% | 575/1725 [rank0]: x [rank1]:[E x] [Rank 1] "), "rank 1");
}

Origin with(std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  Origin origin;
  for (const auto& [part, value] : parts) EXPECT_TRUE(origin.set(part, value)) << part;
  return origin;
}

TEST(OriginText, BeginsWithWhatNamesTheProcessBest) {
  struct Case {
    Origin origin;
    std::string_view text;
  };
  for (const auto& [origin, text] : {
           Case{{}, ""},
           Case{with({{"host", "n1"}}), "n1"},
           Case{with({{"pid", "7"}}), "pid 7"},
           Case{with({{"host", "n1"}, {"pid", "7"}}), "n1 (pid 7)"},
           Case{with({{"actor", "WorkerDict"}, {"host", "n1"}}), "WorkerDict on n1"},
           Case{with({{"task", "4"}, {"host", "n1"}, {"actor", "W"}}), "task 4 on n1 (W)"},
           Case{with({{"local_rank", "1"}}), "local rank 1"},
           Case{with({{"local_rank", "1"}, {"rank", "9"}}), "rank 9"},
           Case{with({{"rank", "3"}, {"task", "3"}, {"pid", "7"}}), "rank 3 (task 3, pid 7)"},
           Case{with({{"process", "learner.0"}, {"rank", "3"}, {"host", "n1"}}), "learner.0 on n1 (rank 3)"},
           Case{with({{"device", "0"}}), "GPU 0"},
           Case{with({{"device", "PCI:0000:38:00"}}), "PCI:0000:38:00"},
           Case{with({{"rank", "1"}, {"device", "1"}}), "rank 1 (GPU 1)"},
           Case{with({{"peer", "n2:45"}, {"host", "n1"}}), "n2:45 (as seen by n1)"},
       })
    EXPECT_EQ(origin.str(), text);
}

TEST(OriginText, HasNoPartOfAnotherName) {
  Origin origin;
  EXPECT_FALSE(origin.set("code", "1"));
  EXPECT_TRUE(origin.empty());
  EXPECT_TRUE(origin.set("peer", "n1"));
  EXPECT_FALSE(origin.empty());
}

TEST(OriginText, TakesFromAnotherOnlyWhatIsNotKnown) {
  auto origin = with({{"rank", "1"}, {"host", "n1"}});
  origin.fill(with({{"rank", "2"}, {"pid", "7"}, {"peer", "n9"}}));
  EXPECT_EQ(origin, with({{"rank", "1"}, {"host", "n1"}, {"pid", "7"}, {"peer", "n9"}}));
}

TEST(Listed, CutsALongList) {
  std::vector<std::string> parts;
  EXPECT_EQ(listed(parts), "");
  parts = {"1"};
  EXPECT_EQ(listed(parts), "1");
  parts = {"1", "2"};
  EXPECT_EQ(listed(parts), "1 and 2");
  parts = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"};
  EXPECT_EQ(listed(parts), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12");
  parts.emplace_back("13");
  EXPECT_EQ(listed(parts), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 1 more");
  parts.emplace_back("14");
  EXPECT_EQ(listed(parts), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more");
}

TEST(NamesOf, CallsRanksByTheirNumbersOnlyWhereEachHasOne) {
  EXPECT_EQ(names_of({with({{"rank", "3"}}), with({{"rank", "3"}, {"host", "n1"}})}),
            "rank 3 and rank 3 on n1");
  EXPECT_EQ(names_of({with({{"process", "learner.0"}, {"rank", "0"}}),
                      with({{"process", "learner.1"}, {"rank", "1"}})}),
            "learner.0 (rank 0) and learner.1 (rank 1)");
  EXPECT_EQ(names_of({with({{"rank", "0"}, {"peer", "n1:5"}}), with({{"rank", "1"}, {"peer", "n1:5"}})}),
            "n1:5 (as seen by rank 0) and n1:5 (as seen by rank 1)");
  EXPECT_EQ(names_of({with({{"rank", "1"}, {"host", "n1"}}), with({{"rank", "0"}, {"host", "n1"}})}),
            "ranks 0 and 1");
}

TEST(NamesOf, SaysANameOnce) {
  EXPECT_EQ(names_of({with({{"peer", "n1"}}), with({{"peer", "n1"}}), {}}), "n1");
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
  EXPECT_EQ(names_of({origin}), "10.0.0.9 (as seen by rank 3)");
}

}  // namespace
}  // namespace nlaunch::diagnose
