#include "fleet/recovery.h"

#include <gtest/gtest.h>

namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// "n2 after 4s"; "none".
std::string choice(const HostHistory& history, Duration now, const std::set<std::string>& in_use = {},
                   const std::vector<std::string>& candidates = {"n1", "n2", "n3"}) {
  const auto chosen = history.choose(candidates, in_use, now);
  return chosen ? chosen->host + " after " + format_duration(chosen->wait) : "none";
}

TEST(HostHistory, ASpareComesBeforeTheHostThatWasLost) {
  HostHistory history;
  history.failed("n1", 10s);
  EXPECT_EQ(choice(history, 10s), "n2 after 0s");
  EXPECT_EQ(choice(history, 10s, {"n2", "n3"}), "n1 after 0s") << "without one, it is tried at once";
  EXPECT_EQ(choice(history, 10s, {"n1", "n2", "n3"}), "none");
  EXPECT_EQ(choice(history, 10s, {}, {}), "none");
}

TEST(HostHistory, EachFurtherFailureDoublesTheWait) {
  HostHistory history;
  const std::set<std::string> in_use{"n2", "n3"};
  std::vector<std::string> waits;
  for (int i = 0; i < 9; ++i) {
    history.failed("n1", 10s);
    waits.push_back(choice(history, 10s, in_use));
  }
  EXPECT_EQ(waits, (std::vector<std::string>{"n1 after 0s", "n1 after 2s", "n1 after 4s", "n1 after 8s",
                                             "n1 after 16s", "n1 after 32s", "n1 after 1m", "n1 after 1m",
                                             "n1 after 1m"}));
  EXPECT_EQ(choice(history, 30s, in_use), "n1 after 40s");
  EXPECT_EQ(choice(history, 90s, in_use), "n1 after 0s");
}

TEST(HostHistory, TheOneThatMayBeTriedFirstIsOfSeveralTheBest) {
  HostHistory history;
  for (int i = 0; i < 3; ++i) history.failed("n1", 10s);
  for (int i = 0; i < 2; ++i) history.failed("n2", 10s);
  EXPECT_EQ(choice(history, 10s, {"n3"}), "n2 after 2s");
  EXPECT_EQ(choice(history, 20s, {"n3"}), "n2 after 0s") << "both may be tried, and it failed less often";
  history.failed("n3", 20s);
  EXPECT_EQ(choice(history, 20s), "n3 after 0s");
}

TEST(HostHistory, OneThatHasJoinedIsTriedAtOnceWhenItIsLostAgain) {
  HostHistory history;
  for (int i = 0; i < 5; ++i) history.failed("n1", 10s);
  history.joined("n1");
  history.failed("n1", 20s);
  EXPECT_EQ(choice(history, 20s, {"n2", "n3"}), "n1 after 0s");
}

TEST(HostHistory, OneThatIsNotFitIsLeftOut) {
  HostHistory history;
  history.rule_out("n2");
  EXPECT_EQ(choice(history, 0s, {"n1"}), "n3 after 0s");
}

}  // namespace
}  // namespace nlaunch::fleet
