#include "shell/traps.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

TEST(Traps, OnlyTheWordsBehindTheHandlerAreSignals) {
  EXPECT_TRUE(sets_trap({"trap", "touch stop", "USR1"}, "USR1"));
  EXPECT_TRUE(sets_trap({"trap", "--", "touch stop", "TERM", "SIGUSR1"}, "USR1"));
  EXPECT_TRUE(sets_trap({"trap", "stop", "usr1"}, "USR1"));
  EXPECT_TRUE(sets_trap({"trap", "stop", "10"}, "USR1"));
  EXPECT_TRUE(sets_trap({"trap", "stop", "0"}, "EXIT"));
  EXPECT_FALSE(sets_trap({"trap", "EXIT", "TERM"}, "EXIT"));
  EXPECT_FALSE(sets_trap({"trap", "kill -USR1 $pid", "TERM"}, "USR1"));
  EXPECT_FALSE(sets_trap({"echo", "x", "USR1"}, "USR1"));
  EXPECT_FALSE(sets_trap({}, "USR1"));
}

TEST(Traps, OneThatResetsOrIgnoresSetsNone) {
  for (const Words& resets : {Words{"trap", "-", "USR1"}, Words{"trap", "--", "-", "USR1"},
                              Words{"trap", "USR1"}, Words{"trap", "15", "10"}}) {
    const auto trap = trap_of(resets);
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->handler, std::nullopt);
    EXPECT_TRUE(trap->names("USR1"));
    EXPECT_FALSE(trap->catches("USR1"));
  }
  const auto ignores = trap_of({"trap", "", "USR1"});
  ASSERT_TRUE(ignores);
  EXPECT_EQ(ignores->handler, "");
  EXPECT_FALSE(ignores->catches("USR1"));
}

TEST(Traps, OneThatPrintsChangesNothing) {
  for (const Words& prints :
       {Words{"trap"}, Words{"trap", "--"}, Words{"trap", "-p", "USR1"}, Words{"trap", "-l"}})
    EXPECT_FALSE(trap_of(prints));
}

}  // namespace
}  // namespace nlaunch::shell
