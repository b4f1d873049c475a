#include <gtest/gtest.h>

#include <algorithm>

#include "unit/evidence/ranks.h"

// Ranks that talk over sockets of their own: who waits for data from another one.
namespace nlaunch::evidence {
namespace {

Analysis of_connections(const Evidence& evidence) {
  const auto all = Registered<Analyzer>::all();
  return (*std::ranges::find(all, "connections", &Analyzer::name))->analyze(evidence);
}

/// A star: each other rank is connected to rank 0, and waits for what it sends.
Evidence star(Member center) {
  auto evidence = of({std::move(center)});
  for (int rank = 1; rank < 3; ++rank) {
    evidence.members.push_back(in(rank, {{"receive", "train.py", 40}}, "sk_wait_data"));
    const auto port = fmt::format("10.0.0.1:{}", 40000 + rank);
    evidence.members.back().connections = {{port, "10.0.0.1:9"}};
    evidence.members[0].connections.push_back({"10.0.0.1:9", port});
  }
  return evidence;
}

TEST(Connections, WhoIsWaitedForAndDoesSomethingElseIsTheCulprit) {
  const auto evidence = star(in(0, {{"load", "train.py", 5}}, "hrtimer_nanosleep"));
  const auto analysis = of_connections(evidence);
  EXPECT_TRUE(analysis.sure);
  ASSERT_EQ(analysis.accused.size(), 1U);
  EXPECT_EQ(analysis.accused[0].member, 0U);
  EXPECT_EQ(analysis.accused[0].why, "sleeps in load (train.py:5), outside of any collective");
  EXPECT_EQ(analysis.says, (std::vector<std::string>{"learner.1 waits for data from learner.0",
                                                     "learner.2 waits for data from learner.0"}));
}

TEST(Connections, WhoMayWaitForItsGpuIsNotBlamedForSure) {
  auto evidence = star(in(0, {{"load", "train.py", 5}}, "", 'R'));
  EXPECT_TRUE(of_connections(evidence).sure);
  evidence.members[0].cuda = true;
  EXPECT_FALSE(of_connections(evidence).sure);
  EXPECT_EQ(of_connections(evidence).accused.size(), 1U);
}

TEST(Connections, WhoWaitsTooIsNotAccused) {
  EXPECT_TRUE(of_connections(star(in(0, {{"load", "train.py", 5}}, "futex_do_wait"))).accused.empty());
  EXPECT_TRUE(of_connections(star(in(0, {{"send", "train.py", 5}}, "wait_woken"))).accused.empty())
      << "they wait for each other";
  EXPECT_TRUE(of_connections(star(waiting(0))).accused.empty()) << "it is in a collective";
}

TEST(Connections, OfTwoNeitherIsForSure) {
  auto evidence = star(in(0, {{"load", "train.py", 5}}, "hrtimer_nanosleep"));
  evidence.members.push_back(in(3, {{"load", "train.py", 5}}, "hrtimer_nanosleep"));
  evidence.members[3].connections = {{"10.0.0.1:7", "10.0.0.1:50000"}};
  evidence.members[1].connections.push_back({"10.0.0.1:50000", "10.0.0.1:7"});
  const auto analysis = of_connections(evidence);
  EXPECT_FALSE(analysis.sure);
  EXPECT_EQ(analysis.accused.size(), 2U);
}

TEST(Connections, WhoIsConnectedToNobodyOfTheRunWaitsForNone) {
  auto evidence = star(in(0, {{"load", "train.py", 5}}, "hrtimer_nanosleep"));
  evidence.members[0].connections.clear();
  EXPECT_TRUE(of_connections(evidence).accused.empty());
  EXPECT_TRUE(of_connections(of({})).accused.empty());
}

}  // namespace
}  // namespace nlaunch::evidence
