#include "supervise/cleaner.h"

#include <fmt/format.h>

#include <optional>

#include "sys/spawn.h"
#include "unit/run_until.h"

namespace nlaunch::supervise {
namespace {

sys::ProcessInfo process(pid_t pid, char state, const std::string& name) {
  sys::ProcessInfo info;
  info.pid = pid;
  info.state = state;
  info.name = name;
  return info;
}

TEST(Cleaner, NamesAProcessSoThatItIsHarmlessForATerminal) {
  EXPECT_EQ(describe(process(4711, 'S', "python")), "python (pid 4711)");
  EXPECT_EQ(describe(process(4711, 'S', "a\x1b")), "a\\x1b (pid 4711)");
  EXPECT_EQ(describe_survivor(process(4711, 'D', "python")), "python (pid 4711, state D)");
}

/// A shell that ends at once and leaves this many sleeping processes behind.
sys::Subtree leaves_behind(int sleepers) {
  static std::uint64_t mark = 4700000;
  sys::SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "i=0; while [ $i -lt $0 ]; do sleep 60 & i=$((i+1)); done",
                  std::to_string(sleepers)};
  request.env = {"PATH=/usr/bin:/bin"};
  request.mark = ++mark;
  const auto pid = sys::spawn(request);
  EXPECT_TRUE(pid);
  return {pid.value_or(0), mark};
}

TEST(Cleaner, KillsWhatProcessesLeaveAndTellsOfEachTree) {
  sys::become_subreaper();
  sys::Loop loop;
  Cleaner cleaner(loop);
  std::optional<Cleaner::Result> of_two;
  std::optional<Cleaner::Result> of_none;
  const auto two = leaves_behind(2);
  const auto none = leaves_behind(0);
  int ended = 0;
  for (const auto& tree : {two, none}) loop.on_child(tree.leader, [&](sys::WaitStatus) { ++ended; });
  run_until(loop, [&] { return ended == 2; });
  cleaner.clean(two, [&](const Cleaner::Result& result) { of_two = result; });
  cleaner.clean(none, [&](const Cleaner::Result& result) {
    of_none = result;
    // Whoever is told may have more to clean.
    cleaner.clean(none, [&](const Cleaner::Result&) { ++ended; });
  });
  EXPECT_FALSE(of_none) << "not from within the call";
  run_until(loop, [&] { return of_two && of_none && ended == 3; });
  ASSERT_EQ(of_two->killed.size(), 2U);
  for (const auto& one : of_two->killed) EXPECT_TRUE(one.contains(" (pid ")) << one;
  EXPECT_TRUE(of_two->survivors.empty());
  EXPECT_TRUE(of_none->killed.empty() && of_none->survivors.empty());
  EXPECT_TRUE(sys::kill_subtrees({two}).empty());
}

}  // namespace
}  // namespace nlaunch::supervise
