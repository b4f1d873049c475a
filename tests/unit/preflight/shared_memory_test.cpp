#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

json file(const std::string& name, std::uint64_t mebibytes, int age, const json& used,
          const std::string& user = "") {
  return {{"name", name}, {"bytes", mebibytes << 20U}, {"age", age},
          {"used", used}, {"mine", user.empty()},      {"user", user.empty() ? "me" : user}};
}

Lines rows(const json& files) {
  const Machine machine(1, 1);
  NodeObservations observations{.plan = machine.plan, .node = machine.node};
  observations.answers["shared-memory"] = {{{"folder", "/dev/shm"}, {"files", files}}, ""};
  return lines(run_check("shared-memory", observations));
}

TEST(SharedMemory, WhatIsInUseOrJustBegunIsFine) {
  const Lines fine{"pass | /dev/shm | nothing left by programs that have exited |  |  | "};
  EXPECT_EQ(rows(json::array()), fine);
  EXPECT_EQ(rows({file("nccl-a", 32, 9000, true), file("nccl-b", 32, 5, false)}), fine);
}

TEST(SharedMemory, OnesOwnLeftoversCanBeRemoved) {
  EXPECT_EQ(rows({file("nccl-AbCdEf", 32, 7200, false), file("torch_77_1_0", 1, 300, false)}),
            (Lines{"warn | /dev/shm | 2 files, 33.0 MiB: nccl-AbCdEf (32.0 MiB, 2 h old), torch_77_1_0 (1.0 "
                   "MiB, 5 min old) | nothing left by programs that have exited | remove them: rm "
                   "/dev/shm/nccl-AbCdEf /dev/shm/torch_77_1_0 | user"}));
}

TEST(SharedMemory, OthersAreNamedByTheirOwners) {
  EXPECT_EQ(rows(json::array({file("nccl-a", 32, 260000, false, "bob")})),
            (Lines{"warn | /dev/shm, of bob | 1 file, 32.0 MiB: nccl-a (32.0 MiB, 3 days old) | nothing left "
                   "by programs that have exited | bob or an administrator can remove them | admin"}));
}

TEST(SharedMemory, WhatCannotBeSeenIsNotJudged) {
  EXPECT_EQ(rows(json::array({file("nccl-a", 32, 7200, nullptr)})),
            (Lines{"skip | /dev/shm | 1 file, 32.0 MiB: nccl-a (32.0 MiB, 2 h old); whether a program uses "
                   "them is unknown, because other processes are hidden here |  |  | "}));
}

TEST(SharedMemory, AFileIsLeftAfterAMinute) {
  EXPECT_TRUE(rows(json::array({file("a", 1, 59, false)}))[0].starts_with("pass"));
  EXPECT_TRUE(rows(json::array({file("a", 1, 60, false)}))[0].starts_with("warn"));
}

TEST(SharedMemory, ManyAreNamedByTheirBeginnings) {
  const auto many = [](int count) {
    auto files = json::array();
    for (int i = 0; i < count; ++i) files.push_back(file(fmt::format("f{}", i), 1, 100, false));
    return rows(files).at(0);
  };
  EXPECT_NE(
      many(3).find(
          "3 files, 3.0 MiB: f0 (1.0 MiB, 100 s old), f1 (1.0 MiB, 100 s old), f2 (1.0 MiB, 100 s old) |"),
      std::string::npos);
  EXPECT_NE(many(4).find("f2 (1.0 MiB, 100 s old), ... |"), std::string::npos);
  EXPECT_TRUE(many(5).ends_with("rm /dev/shm/f0 /dev/shm/f1 /dev/shm/f2 /dev/shm/f3 /dev/shm/f4 | user"));
  EXPECT_TRUE(many(6).ends_with("rm /dev/shm/f0 /dev/shm/f1 /dev/shm/f2 /dev/shm/f3 /dev/shm/f4 ... | user"));
}

TEST(SharedMemory, EachKindHasARowOfItsOwn) {
  const auto all = rows({file("a", 1, 100, false), file("b", 1, 100, false, "bob"),
                         file("c", 1, 100, false, "alice"), file("d", 1, 100, nullptr)});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[0].starts_with("warn | /dev/shm | 1 file, 1.0 MiB: a"));
  EXPECT_TRUE(all[1].starts_with("warn | /dev/shm, of alice | "));
  EXPECT_TRUE(all[2].starts_with("warn | /dev/shm, of bob | "));
  EXPECT_TRUE(all[3].starts_with("skip | /dev/shm | 1 file, 1.0 MiB: d"));
}

TEST(SharedMemory, WithoutAnAnswerItIsUnknown) {
  const Machine machine(1, 1);
  NodeObservations observations{.plan = machine.plan, .node = machine.node};
  EXPECT_TRUE(run_check("shared-memory", observations).empty());
  observations.answers["shared-memory"] = {nullptr, "it did not answer"};
  EXPECT_EQ(lines(run_check("shared-memory", observations)),
            Lines{"unknown | /dev/shm | it did not answer |  |  | "});
}

}  // namespace
}  // namespace nlaunch::preflight
