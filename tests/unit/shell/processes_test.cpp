#include "shell/processes.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

constexpr pid_t kScript = 10;

/// A script with two programs in the background, as its shell starts them.
class OfAScript : public testing::Test {
 protected:
  void SetUp() override {
    processes_.forked(kScript, 11);
    processes_.started(11, 0);
    processes_.forked(kScript, 12);
    processes_.started(12, 1);
  }
  /// The third one.
  void next() {
    processes_.traced(kScript, "python train.py");
    processes_.forked(kScript, 13);
    processes_.started(13, 2);
  }
  [[nodiscard]] bool had(std::size_t first, std::size_t next) const {
    return had_ended(processes_.of(first), processes_.of(next));
  }
  [[nodiscard]] bool was(std::size_t first, std::size_t next) const {
    return was_ended(processes_.of(first), processes_.of(next));
  }
  Processes processes_;
};

TEST_F(OfAScript, AllAreWaitedFor) {
  processes_.traced(kScript, "wait");
  next();
  EXPECT_TRUE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
  EXPECT_FALSE(was(0, 2));
  EXPECT_FALSE(had(0, 1));
  EXPECT_FALSE(had(2, 0));
}

TEST_F(OfAScript, OneOfThemIs) {
  processes_.traced(kScript, "wait 12 99");
  next();
  EXPECT_FALSE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
}

TEST_F(OfAScript, WhicheverEndsFirstIsNotKnown) {
  processes_.traced(kScript, "wait -n");
  next();
  EXPECT_FALSE(had(0, 2));
  processes_.traced(kScript, "waiting");
  processes_.forked(kScript, 14);
  processes_.started(14, 3);
  EXPECT_FALSE(had(2, 3));
}

TEST_F(OfAScript, AWaitIsOverWhenItsShellGoesOn) {
  processes_.traced(kScript, "wait");
  // The second one has started something meanwhile.
  processes_.forked(12, 20);
  processes_.started(20, 2);
  EXPECT_FALSE(had(0, 2));
  processes_.forked(kScript, 21);  // a program in the background tells of itself
  processes_.started(21, 3);
  EXPECT_TRUE(had(0, 3));
  EXPECT_TRUE(had(2, 3));
}

TEST_F(OfAScript, AShellBesideItHasWaitedForNothing) {
  // ( a & wait; b ) & c
  processes_.forked(12, 20);
  processes_.started(20, 2);
  processes_.traced(12, "wait");
  processes_.forked(12, 21);
  processes_.started(21, 3);
  processes_.forked(kScript, 22);
  processes_.started(22, 4);
  EXPECT_TRUE(had(2, 3));
  EXPECT_FALSE(had(2, 4));
}

TEST_F(OfAScript, AShellMayBecomeItsLastProgram) {
  processes_.traced(kScript, "wait");
  processes_.started(kScript, 2);
  EXPECT_TRUE(had(0, 2));
}

TEST_F(OfAScript, WhatWasOnItsWayHasNotWaited) {
  processes_.traced(kScript, "kill 11");
  processes_.traced(kScript, "echo");
  processes_.forked(12, 20);
  processes_.started(20, 2);
  EXPECT_FALSE(had(0, 2));
}

TEST_F(OfAScript, WhatIsKilledWasEnded) {
  processes_.traced(kScript, "kill -0 11");
  processes_.traced(kScript, "kill -s 0 11");
  processes_.traced(kScript, "kill -l 11");
  processes_.traced(kScript, "kill -9 12");
  processes_.traced(kScript, "wait 12");
  next();
  EXPECT_FALSE(had(0, 2));
  EXPECT_TRUE(had(1, 2));
  EXPECT_TRUE(was(1, 2));
}

TEST_F(OfAScript, NothingIsKnownOfWhatDidNotStart) {
  EXPECT_FALSE(had(7, 1));
  EXPECT_FALSE(had(1, 7));
}

TEST_F(OfAScript, TheEndIsAwaited) {
  processes_.traced(kScript, "echo");
  EXPECT_FALSE(processes_.of(0).is_awaited);
  processes_.traced(kScript, "wait 12");
  EXPECT_FALSE(processes_.of(0).is_awaited);
  EXPECT_TRUE(processes_.of(1).is_awaited);
  processes_.traced(kScript, "kill 11");
  processes_.traced(kScript, "wait 11");
  EXPECT_FALSE(processes_.of(0).is_awaited);
}

/// `bash gen.sh` with two programs in the background, and then c.
class OfAShellInFront : public testing::Test {
 protected:
  void SetUp() override {
    processes_.traced(kScript, "bash gen.sh");
    processes_.forked(kScript, 20);
    processes_.becomes_shell(20);
    for (const pid_t pid : {21, 22}) {
      processes_.forked(20, pid, true);
      processes_.started(pid, static_cast<std::size_t>(pid - 21));
    }
  }
  void next(bool ended = true) {
    if (ended) processes_.ended(20);
    processes_.traced(kScript, "c");
    processes_.forked(kScript, 30);
    processes_.started(30, 2, Processes::Foreground::of_all);
  }
  [[nodiscard]] bool had(std::size_t first) const {
    return had_ended(processes_.of(first), processes_.of(2));
  }
  Processes processes_;
};

TEST_F(OfAShellInFront, WhatItHasWaitedForHadEnded) {
  processes_.traced(20, "wait");
  next();
  EXPECT_TRUE(had(0));
  EXPECT_TRUE(had(1));
}

TEST_F(OfAShellInFront, WhileItRunsNothingHad) {
  processes_.traced(20, "wait");
  next(false);
  EXPECT_FALSE(had(0));
}

TEST_F(OfAShellInFront, WhatItHasLeftHadNot) {
  processes_.traced(20, "wait 21");
  processes_.traced(20, "true");
  next();
  EXPECT_TRUE(had(0));
  EXPECT_FALSE(had(1));
}

TEST(Processes, AScriptThatTracesNothingItselfWaitsForNothing) {
  Processes processes;
  processes.forked(kScript, 11);
  processes.started(11, 0);
  processes.forked(kScript, 12);
  processes.started(12, 1, Processes::Foreground::of_all);
  EXPECT_FALSE(processes.of(0).is_awaited);
}

/// `(a; b) &` and then c in the foreground.
class OfASubshell : public testing::Test {
 protected:
  void SetUp() override {
    using enum Processes::Foreground;
    processes_.forked(kScript, 20);
    processes_.traced(20, "a");
    processes_.forked(20, 21);
    processes_.started(21, 0, of_its_shell);
    processes_.traced(kScript, "c");
    processes_.forked(kScript, 30);
    processes_.started(30, 1, of_all);
    processes_.traced(20, "b");
    processes_.forked(20, 22);
    processes_.started(22, 2, of_its_shell);
  }
  [[nodiscard]] bool had(std::size_t first, std::size_t next) const {
    return had_ended(processes_.of(first), processes_.of(next));
  }
  Processes processes_;
};

TEST_F(OfASubshell, OneFollowsTheOther) {
  EXPECT_TRUE(had(0, 2));
  EXPECT_FALSE(had(0, 1));
  EXPECT_FALSE(had(1, 2));
}

TEST_F(OfASubshell, IsAwaitedWithItsShell) {
  EXPECT_TRUE(processes_.of(1).is_awaited);
  EXPECT_FALSE(processes_.of(2).is_awaited);
  processes_.traced(kScript, "wait");
  EXPECT_TRUE(processes_.of(0).is_awaited);
  EXPECT_TRUE(processes_.of(2).is_awaited);
}

}  // namespace
}  // namespace nlaunch::shell
