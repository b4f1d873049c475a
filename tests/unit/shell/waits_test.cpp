#include "shell/waits.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

constexpr pid_t kScript = 10;

/// A script with two programs in the background, as its shell starts them.
class OfAScript : public testing::Test {
 protected:
  void SetUp() override {
    waits_.forked(kScript, 11);
    waits_.started(11, 0);
    waits_.forked(kScript, 12);
    waits_.started(12, 1);
  }
  /// The third one.
  void next() {
    waits_.traced(kScript, "python train.py");
    waits_.forked(kScript, 13);
    waits_.started(13, 2);
  }
  [[nodiscard]] bool had(std::size_t first, std::size_t next) const {
    return had_ended(waits_.of(first), waits_.of(next));
  }
  [[nodiscard]] bool was(std::size_t first, std::size_t next) const {
    return was_ended(waits_.of(first), waits_.of(next));
  }
  Waits waits_;
};

TEST_F(OfAScript, AllAreWaitedFor) {
  waits_.traced(kScript, "wait");
  next();
  EXPECT_TRUE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
  EXPECT_FALSE(was(0, 2));
  EXPECT_FALSE(had(0, 1));
  EXPECT_FALSE(had(2, 0));
}

TEST_F(OfAScript, OneOfThemIs) {
  waits_.traced(kScript, "wait 12 99");
  next();
  EXPECT_FALSE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
}

TEST_F(OfAScript, WhicheverEndsFirstIsNotKnown) {
  waits_.traced(kScript, "wait -n");
  next();
  EXPECT_FALSE(had(0, 2));
  waits_.traced(kScript, "waiting");
  waits_.forked(kScript, 14);
  waits_.started(14, 3);
  EXPECT_FALSE(had(2, 3));
}

TEST_F(OfAScript, AWaitIsOverWhenItsShellGoesOn) {
  waits_.traced(kScript, "wait");
  // The second one has started something meanwhile.
  waits_.forked(12, 20);
  waits_.started(20, 2);
  EXPECT_FALSE(had(0, 2));
  waits_.forked(kScript, 21);  // a program in the background tells of itself
  waits_.started(21, 3);
  EXPECT_TRUE(had(0, 3));
  EXPECT_TRUE(had(2, 3));
}

TEST_F(OfAScript, AShellBesideItHasWaitedForNothing) {
  // ( a & wait; b ) & c
  waits_.forked(12, 20);
  waits_.started(20, 2);
  waits_.traced(12, "wait");
  waits_.forked(12, 21);
  waits_.started(21, 3);
  waits_.forked(kScript, 22);
  waits_.started(22, 4);
  EXPECT_TRUE(had(2, 3));
  EXPECT_FALSE(had(2, 4));
}

TEST_F(OfAScript, AShellMayBecomeItsLastProgram) {
  waits_.traced(kScript, "wait");
  waits_.started(kScript, 2);
  EXPECT_TRUE(had(0, 2));
}

TEST_F(OfAScript, WhatWasOnItsWayHasNotWaited) {
  waits_.traced(kScript, "kill 11");
  waits_.traced(kScript, "echo");
  waits_.forked(12, 20);
  waits_.started(20, 2);
  EXPECT_FALSE(had(0, 2));
}

TEST_F(OfAScript, WhatIsKilledWasEnded) {
  waits_.traced(kScript, "kill -0 11");
  waits_.traced(kScript, "kill -s 0 11");
  waits_.traced(kScript, "kill -l 11");
  waits_.traced(kScript, "kill -9 12");
  waits_.traced(kScript, "wait 12");
  next();
  EXPECT_FALSE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
  EXPECT_TRUE(was(1, 2));
}

TEST_F(OfAScript, NothingIsKnownOfWhatDidNotStart) {
  EXPECT_FALSE(had(7, 1));
  EXPECT_FALSE(had(1, 7));
}

}  // namespace
}  // namespace nlaunch::shell
