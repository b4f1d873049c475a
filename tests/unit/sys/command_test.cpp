#include "sys/command.h"

#include <gtest/gtest.h>

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

Result<CommandResult> run(std::vector<std::string> argv, Duration deadline = 20s) {
  SpawnRequest request;
  request.argv = std::move(argv);
  request.env = {"PATH=/usr/bin:/bin"};
  return run_command(std::move(request), deadline);
}

TEST(Command, IsCutShortAsSoonAsItIsEnough) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const CutShort cut([&] { return std::chrono::steady_clock::now() > begin + 200ms; });
    const auto quick = run({"echo", "done"});
    ASSERT_TRUE(quick);
    EXPECT_EQ(quick->out, "done\n");
    const auto slow = run({"sh", "-c", "echo begun; sleep 100"});
    ASSERT_TRUE(slow);
    EXPECT_TRUE(slow->timed_out);
    EXPECT_EQ(slow->out, "begun\n");
    EXPECT_TRUE(slow->status.by_signal()) << "it is gone, not left alone";
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  const auto after = run({"echo", "again"});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->out, "again\n");
}

TEST(Command, WhatCutsShortEndsWithItsScope) {
  const CutShort outer([] { return true; });
  {
    const CutShort inner([] { return false; });
    EXPECT_FALSE(run({"true"})->timed_out);
  }
  EXPECT_TRUE(run({"sleep", "100"})->timed_out);
}

}  // namespace
}  // namespace nlaunch::sys
